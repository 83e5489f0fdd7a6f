package locktopus.peer.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Semaphore;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/**
 * The commands for Redisson. Arguments in brackets are optional: no lease means the watchdog's, no wait
 * means no waiting.
 *
 * <pre>
 * lock, fair, spin, fenced, read, write, non-reentrant, non-reentrant-fair, multi (NAME: two names, with a comma):
 *     lock NAME [LEASE]   try NAME [WAIT [LEASE]]   unlock NAME   force-unlock NAME
 *     is-locked NAME   is-mine NAME   hold-count NAME   remaining NAME
 * fenced: lock and try answer with the token
 * semaphore: set NAME N   acquire NAME N   try NAME N [WAIT]   release NAME N   available NAME
 * permits:   set NAME N   acquire NAME [LEASE]   try NAME WAIT [LEASE]   release NAME ID
 *            extend NAME ID LEASE   available NAME
 * latch:     set NAME N   count-down NAME   await NAME [WAIT]   count NAME
 * self:      owner   clock   waits THREAD
 * </pre>
 */
final class Commands {
    private static final String OK = "ok";
    private static final String NO = "no";

    private final RedissonClient redisson;

    Commands(RedissonClient redisson) {
        this.redisson = redisson;
    }

    String run(List<String> command) throws InterruptedException {
        Arguments arguments = Arguments.of(command);
        return switch (arguments.object()) {
            case "lock" -> lock(redisson.getLock(arguments.name()), arguments);
            case "fair" -> lock(redisson.getFairLock(arguments.name()), arguments);
            case "non-reentrant" -> lock(redisson.getNonReentrantLock(arguments.name()), arguments);
            case "non-reentrant-fair" -> lock(redisson.getNonReentrantFairLock(arguments.name()), arguments);
            case "multi" -> lock(both(arguments.name().split(",")), arguments);
            case "spin" -> lock(redisson.getSpinLock(arguments.name()), arguments);
            case "read" -> lock(redisson.getReadWriteLock(arguments.name()).readLock(), arguments);
            case "write" -> lock(redisson.getReadWriteLock(arguments.name()).writeLock(), arguments);
            case "fenced" -> fenced(redisson.getFencedLock(arguments.name()), arguments);
            case "semaphore" -> semaphore(redisson.getSemaphore(arguments.name()), arguments);
            case "permits" -> permits(redisson.getPermitExpirableSemaphore(arguments.name()), arguments);
            case "latch" -> latch(redisson.getCountDownLatch(arguments.name()), arguments);
            case "self" -> self(arguments);
            default -> throw arguments.unknown();
        };
    }

    private RLock both(String[] names) {
        return redisson.getMultiLock(redisson.getLock(names[0]), redisson.getLock(names[1]));
    }

    private static String lock(RLock lock, Arguments arguments) throws InterruptedException {
        switch (arguments.verb()) {
            case "lock" -> {
                lock.lockInterruptibly(arguments.numberOrNone(1), MILLISECONDS);
                return OK;
            }
            case "try" -> {
                long wait = arguments.has(1) ? arguments.number(1) : 0;
                return said(lock.tryLock(wait, arguments.numberOrNone(2), MILLISECONDS));
            }
            case "unlock" -> {
                lock.unlock();
                return OK;
            }
            case "force-unlock" -> {
                return said(lock.forceUnlock());
            }
            case "is-locked" -> {
                return said(lock.isLocked());
            }
            case "is-mine" -> {
                return said(lock.isHeldByCurrentThread());
            }
            case "hold-count" -> {
                return said(lock.getHoldCount());
            }
            case "remaining" -> {
                return said(lock.remainTimeToLive());
            }
            default -> throw arguments.unknown();
        }
    }

    private static String fenced(RFencedLock lock, Arguments arguments) throws InterruptedException {
        return switch (arguments.verb()) {
            // Redisson's own wait for a token cannot be interrupted.
            case "lock" -> said(lock.lockAndGetToken(arguments.numberOrNone(1), MILLISECONDS));
            case "try" -> {
                long wait = arguments.has(1) ? arguments.number(1) : 0;
                Long token = lock.tryLockAndGetToken(wait, arguments.numberOrNone(2), MILLISECONDS);
                yield token == null ? NO : said(token);
            }
            default -> lock(lock, arguments);
        };
    }

    private static String semaphore(RSemaphore semaphore, Arguments arguments) throws InterruptedException {
        switch (arguments.verb()) {
            case "set" -> {
                return said(semaphore.trySetPermits(arguments.count(1)));
            }
            case "acquire" -> {
                semaphore.acquire(arguments.count(1));
                return OK;
            }
            case "try" -> {
                if (!arguments.has(2)) {
                    return said(semaphore.tryAcquire(arguments.count(1)));
                }
                Duration wait = Duration.ofMillis(arguments.number(2));
                return said(semaphore.tryAcquire(arguments.count(1), wait));
            }
            case "release" -> {
                semaphore.release(arguments.count(1));
                return OK;
            }
            case "available" -> {
                return said(semaphore.availablePermits());
            }
            default -> throw arguments.unknown();
        }
    }

    private static String permits(RPermitExpirableSemaphore permits, Arguments arguments)
            throws InterruptedException {
        return switch (arguments.verb()) {
            case "set" -> said(permits.trySetPermits(arguments.count(1)));
            case "acquire" -> OK + " "
                    + (arguments.has(1) ? permits.acquire(arguments.number(1), MILLISECONDS) : permits.acquire());
            case "try" -> {
                String id = permits.tryAcquire(arguments.number(1), arguments.numberOrNone(2), MILLISECONDS);
                yield id == null ? NO : OK + " " + id;
            }
            case "release" -> said(permits.tryRelease(arguments.text(1)));
            case "extend" -> said(permits.updateLeaseTime(arguments.text(1), arguments.number(2), MILLISECONDS));
            case "available" -> said(permits.availablePermits());
            default -> throw arguments.unknown();
        };
    }

    private static String latch(RCountDownLatch latch, Arguments arguments) throws InterruptedException {
        switch (arguments.verb()) {
            case "set" -> {
                return said(latch.trySetCount(arguments.number(1)));
            }
            case "count-down" -> {
                latch.countDown();
                return OK;
            }
            case "await" -> {
                if (!arguments.has(1)) {
                    latch.await();
                    return OK;
                }
                return said(latch.await(arguments.number(1), MILLISECONDS));
            }
            case "count" -> {
                return said(latch.getCount());
            }
            default -> throw arguments.unknown();
        }
    }

    private String self(Arguments arguments) {
        return switch (arguments.verb()) {
            case "owner" -> OK + " " + redisson.getId() + ":" + Thread.currentThread().getId();
            case "clock" -> said(System.nanoTime());
            case "waits" -> said(waitsForMessage(arguments.name()));
            default -> throw arguments.unknown();
        };
    }

    /**
     * Whether a thread is where Redisson's locks wait for the message of a release. By then it has
     * subscribed and tried once more, so only a message wakes it.
     */
    private static boolean waitsForMessage(String thread) {
        return Thread.getAllStackTraces().entrySet().stream()
                .filter(entry -> entry.getKey().getName().equals(thread))
                .flatMap(entry -> Arrays.stream(entry.getValue()))
                .anyMatch(frame -> frame.getClassName().equals(Semaphore.class.getName()));
    }

    private static String said(boolean answer) {
        return answer ? OK : NO;
    }

    private static String said(long value) {
        return OK + " " + value;
    }
}
