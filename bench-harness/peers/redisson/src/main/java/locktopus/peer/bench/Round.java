package locktopus.peer.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** All workers of this process, each a thread. */
final class Round {
    /** How long after the measured part a worker may wait for its last lock. */
    private static final long LAST_WAIT_NS = TimeUnit.SECONDS.toNanos(30);

    private final Job job;
    private final RedissonClient redisson;

    Round(Job job, RedissonClient redisson) {
        this.job = job;
        this.redisson = redisson;
    }

    /**
     * Runs the workload until Java has compiled it. It uses other locks than the measured part, and all
     * processes of the round compete for them as they will for the real ones.
     */
    void warmUp() throws InterruptedException {
        run(job.prefix() + "-warm-up", Clock.now(), job.warmUpNs());
    }

    Recorder measure(long startNs) throws InterruptedException {
        return run(job.prefix(), startNs, job.durationNs());
    }

    private Recorder run(String prefix, long startNs, long lengthNs) throws InterruptedException {
        List<Running> all = new ArrayList<>();
        for (int number = 0; number < job.workers(); number++) {
            int worker = job.firstWorker() + number;
            RLock lock = lock(prefix + "-" + job.lockOf(worker));
            all.add(Running.start(new Pace(job, worker, lock, startNs, lengthNs)));
        }
        Recorder sum = new Recorder();
        for (Running one : all) {
            sum.merge(one.result(startNs + lengthNs + LAST_WAIT_NS));
        }
        return sum;
    }

    private RLock lock(String name) {
        return switch (job.kind()) {
            case "lock" -> redisson.getLock(name);
            case "fair-lock" -> redisson.getFairLock(name);
            case "spin-lock" -> redisson.getSpinLock(name);
            case "write-lock" -> redisson.getReadWriteLock(name).writeLock();
            default -> throw new IllegalArgumentException("Redisson has no kind of lock called " + job.kind());
        };
    }

    private record Running(Thread thread, FutureTask<Recorder> task) {
        static Running start(Pace pace) {
            FutureTask<Recorder> task = new FutureTask<>(pace::run);
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            thread.start();
            return new Running(thread, task);
        }

        /** The worker's records. After the deadline it is told to give up. */
        Recorder result(long deadlineNs) throws InterruptedException {
            try {
                try {
                    return task.get(deadlineNs - Clock.now(), TimeUnit.NANOSECONDS);
                } catch (TimeoutException late) {
                    thread.interrupt();
                    return task.get();
                }
            } catch (ExecutionException failure) {
                throw new IllegalStateException("a worker failed", failure.getCause());
            }
        }
    }
}
