package neighbour;

import org.redisson.config.Config;

/** Redisson, which is only asked what it does where nothing is said: tests of its locks have a program of their own. */
final class Redisson implements Library {
    private final Config config = new Config();

    @Override
    public String version() {
        return String.valueOf(Config.class.getPackage().getImplementationVersion());
    }

    @Override
    public String does(String[] words) {
        if (!words[0].equals("defaults")) {
            throw new IllegalArgumentException(words[0]);
        }
        return "lockWatchdogTimeout=" + config.getLockWatchdogTimeout()
                + " checkLockSyncedSlaves=" + config.isCheckLockSyncedSlaves()
                + " slavesSyncTimeout=" + config.getSlavesSyncTimeout()
                + " fairLockWaitTimeout=" + config.getFairLockWaitTimeout();
    }
}
