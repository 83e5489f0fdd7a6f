package neighbour;

/** A lock library, by the commands of the conversation. */
interface Library {
    String version();

    /** What came out of a command, empty if nothing did. */
    String does(String[] words) throws Exception;

    /** The answer is no. */
    final class Refused extends Exception {
        private static final long serialVersionUID = 1;

        Refused(String why) {
            super(why);
        }
    }
}
