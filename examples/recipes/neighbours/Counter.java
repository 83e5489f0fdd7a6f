import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RList;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * The Java half of with_redisson: java -cp 'FOLDER_OF_REDISSON/*' Counter.java redis://127.0.0.1:6379
 */
public final class Counter {
    public static void main(String[] arguments) throws InterruptedException {
        Config config = new Config();
        config.useSingleServer().setAddress(arguments[0]);
        RedissonClient redisson = Redisson.create(config);
        try {
            takeTurns(redisson);
        } finally {
            redisson.shutdown();
        }
    }

    private static void takeTurns(RedissonClient redisson) throws InterruptedException {
        RLock lock = redisson.getLock("orders");
        RBucket<String> counter = redisson.getBucket("orders:counter", StringCodec.INSTANCE);
        RList<String> turns = redisson.getList("orders:turns", StringCodec.INSTANCE);
        System.out.println("connected");
        for (int turn = 0; turn < 200; turn++) {
            lock.lock();
            try {
                String seen = counter.get();
                Thread.sleep(1); // the work
                counter.set(String.valueOf(seen == null ? 1 : Long.parseLong(seen) + 1));
                turns.add("java");
            } finally {
                lock.unlock();
            }
            Thread.sleep(1); // other work
        }
    }
}
