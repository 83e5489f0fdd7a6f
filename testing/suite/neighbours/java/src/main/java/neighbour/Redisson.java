package neighbour;

import org.redisson.config.Config;

/** Redisson, only for its defaults: the tests of its locks have their own program. */
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
