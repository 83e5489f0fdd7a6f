package locktopus.peer;

import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.api.redisnode.RedisNode;
import org.redisson.api.redisnode.RedisNodes;

/** A Redisson that is connected to the servers of a Locktopus URL. */
public final class Servers implements AutoCloseable {
    private static final long CLOSE_SECONDS = 2;

    private final RedissonClient redisson;
    private final ServerUrl.Shape shape;

    private Servers(RedissonClient redisson, ServerUrl.Shape shape) {
        this.redisson = redisson;
        this.shape = shape;
    }

    public static Servers connect(String url) {
        ServerUrl where = new ServerUrl(url);
        return new Servers(Redisson.create(where.config()), where.shape);
    }

    public RedissonClient redisson() {
        return redisson;
    }

    /** The version of Redisson. */
    public static String version() {
        return Redisson.class.getPackage().getImplementationVersion();
    }

    /** A server that commands go to. */
    public RedisNode node() {
        return switch (shape) {
            case STANDALONE -> redisson.getRedisNodes(RedisNodes.SINGLE).getInstance();
            case SENTINEL -> redisson.getRedisNodes(RedisNodes.SENTINEL_MASTER_SLAVE).getMaster();
            case CLUSTER -> redisson.getRedisNodes(RedisNodes.CLUSTER).getMasters().iterator().next();
        };
    }

    @Override
    public void close() {
        redisson.shutdown(0, CLOSE_SECONDS, TimeUnit.SECONDS);
    }
}
