package neighbour;

/** A lock library, driven by the commands of the protocol. */
interface Library {
    String version();

    /** The result of a command, or an empty one. */
    String does(String[] words) throws Exception;

    /** The library refused. */
    final class Refused extends Exception {
        private static final long serialVersionUID = 1;

        Refused(String why) {
            super(why);
        }
    }
}
