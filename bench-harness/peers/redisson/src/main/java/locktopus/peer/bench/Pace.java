package locktopus.peer.bench;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** One worker: a thread that takes and releases its lock again and again. */
final class Pace {
    private final Job job;
    private final int worker;
    private final RLock lock;
    private final long startNs;
    private final long endNs;
    private final Recorder recorder = new Recorder();

    /** Works from {@code startNs} on the machine's clock, for {@code lengthNs}. */
    Pace(Job job, int worker, RLock lock, long startNs, long lengthNs) {
        this.job = job;
        this.worker = worker;
        this.lock = lock;
        this.startNs = startNs;
        this.endNs = lengthNs;
    }

    /** Returns the records. An interrupt ends a hopeless wait. */
    Recorder run() {
        try {
            TimeUnit.NANOSECONDS.sleep(startNs - Clock.now());
            while (sinceStart() < endNs) {
                once();
            }
        } catch (InterruptedException hopeless) {
            recorder.error("never got it");
        }
        return recorder;
    }

    private void once() throws InterruptedException {
        long asked = sinceStart();
        try {
            // Without a lease, so that the watchdog is on, as with the other libraries.
            lock.lockInterruptibly();
        } catch (RuntimeException failure) {
            recorder.error("backend");
            return;
        }
        long granted = sinceStart();
        if (job.holdNs() > 0) {
            TimeUnit.NANOSECONDS.sleep(job.holdNs());
        }
        long ended = sinceStart();
        boolean released = release();
        long done = sinceStart();
        recorder.held(new Hold(job.lockOf(worker), granted, ended, worker));
        // A grant after the measured part counts as a hold, but not as a latency: the other workers
        // had stopped asking by then.
        if (released && granted <= endNs) {
            recorder.record(Recorder.ACQUIRE, asked, granted);
            recorder.record(Recorder.RELEASE, ended, done);
            if (!job.hot()) {
                recorder.record(Recorder.PAIR, asked, done - (ended - granted));
            }
        }
    }

    private boolean release() {
        try {
            lock.unlock();
            return true;
        } catch (IllegalMonitorStateException notOurs) {
            recorder.error("lost");
        } catch (RuntimeException failure) {
            recorder.error("backend");
        }
        return false;
    }

    private long sinceStart() {
        return Clock.now() - startNs;
    }
}
