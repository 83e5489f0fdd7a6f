package neighbour;

import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/**
 * ShedLock. It does not wait, and its release returns nothing, so this first checks whether there
 * is a lock to release.
 */
final class ShedLock implements Library {
    private static final String ENVIRONMENT = "default";

    private final StringRedisTemplate store;
    private final RedisLockProvider safe;
    private final RedisLockProvider usual;
    private SimpleLock held;
    private String key;
    private String value;

    ShedLock(RedisConnectionFactory connections) {
        store = new StringRedisTemplate(connections);
        safe = new RedisLockProvider.Builder(connections).environment(ENVIRONMENT).safeUpdate(true).build();
        usual = new RedisLockProvider.Builder(connections).environment(ENVIRONMENT).safeUpdate(false).build();
    }

    @Override
    public String version() {
        return "ShedLock";
    }

    @Override
    public String does(String[] words) throws Exception {
        switch (words[0]) {
            case "acquire" -> {
                while (!take(safe, words)) {
                    Thread.sleep(5);
                }
            }
            case "try" -> {
                if (!take(safe, words)) {
                    throw new Refused("busy");
                }
            }
            case "try-unsafe" -> {
                if (!take(usual, words)) {
                    throw new Refused("busy");
                }
            }
            case "extend" -> {
                Optional<SimpleLock> extended =
                        held.extend(Duration.ofMillis(Long.parseLong(words[1])), Duration.ZERO);
                held = extended.orElseThrow(() -> new Refused("not extended"));
                value = store.opsForValue().get(key);
            }
            case "release" -> {
                boolean own = value.equals(store.opsForValue().get(key));
                held.unlock();
                if (!own) {
                    throw new Refused("not held");
                }
                return "";
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return value;
    }

    private boolean take(RedisLockProvider provider, String[] words) {
        Duration lease = Duration.ofMillis(Long.parseLong(words[2]));
        Optional<SimpleLock> taken =
                provider.lock(new LockConfiguration(Instant.now(), words[1], lease, Duration.ZERO));
        taken.ifPresent(
                lock -> {
                    held = lock;
                    key = "job-lock:" + ENVIRONMENT + ":" + words[1];
                    // On a busy machine, a short lease may have ended by now.
                    value = Objects.requireNonNullElse(store.opsForValue().get(key), "ended");
                });
        return taken.isPresent();
    }
}
