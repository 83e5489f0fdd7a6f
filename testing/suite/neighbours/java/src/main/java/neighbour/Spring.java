package neighbour;

import java.lang.reflect.Field;
import java.time.Duration;
import java.util.concurrent.locks.Lock;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/**
 * Spring Integration's RedisLockRegistry. The lease is a setting of a registry, so each acquisition
 * uses a new one.
 */
final class Spring implements Library {
    private static final String REGISTRY = "orders";

    private final RedisConnectionFactory connections;
    private final StringRedisTemplate store;
    private RedisLockRegistry registry;
    private String name;
    private Lock held;

    Spring(RedisConnectionFactory connections) {
        this.connections = connections;
        this.store = new StringRedisTemplate(connections);
    }

    @Override
    public String version() {
        return String.valueOf(RedisLockRegistry.class.getPackage().getImplementationVersion());
    }

    @Override
    public String does(String[] words) throws Exception {
        return switch (words[0]) {
            case "acquire" -> take(words, RedisLockType.SPIN_LOCK, true);
            case "acquire-listening" -> take(words, RedisLockType.PUB_SUB_LOCK, true);
            case "try" -> take(words, RedisLockType.SPIN_LOCK, false);
            case "defaults" -> defaults();
            case "extend" -> {
                registry.renewLock(name);
                yield "";
            }
            case "release" -> {
                held.unlock();
                yield "";
            }
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    /** These fields are not public; this only reads them. */
    private String defaults() throws ReflectiveOperationException {
        RedisLockRegistry plain = new RedisLockRegistry(connections, REGISTRY);
        StringBuilder said = new StringBuilder();
        for (String name : new String[] {"expireAfter", "idleBetweenTries", "redisLockType"}) {
            Field field = RedisLockRegistry.class.getDeclaredField(name);
            field.setAccessible(true);
            said.append(name).append('=').append(field.get(plain)).append(' ');
        }
        return said.toString().strip();
    }

    private String take(String[] words, RedisLockType type, boolean wait) throws Refused {
        name = words[1];
        registry = new RedisLockRegistry(connections, REGISTRY, Long.parseLong(words[2]));
        registry.setRedisLockType(type);
        registry.setIdleBetweenTries(Duration.ofMillis(5));
        held = registry.obtain(name);
        if (wait) {
            held.lock();
        } else if (!held.tryLock()) {
            throw new Refused("busy");
        }
        return store.opsForValue().get(REGISTRY + ":" + name);
    }
}
