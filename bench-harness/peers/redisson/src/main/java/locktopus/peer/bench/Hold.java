package locktopus.peer.bench;

import java.io.ByteArrayOutputStream;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;

/**
 * The time during which a worker believed that it holds a lock, in nanoseconds since the start: from
 * after the grant arrived until before the release is sent.
 */
record Hold(int lock, long startNs, long endNs, int worker) {

    /** Base64 of variable-length integers, starts as differences, as {@code record::hold} reads them. */
    static String pack(List<Hold> holds) {
        List<Hold> sorted = holds.stream().sorted(Comparator.comparingLong(Hold::startNs)).toList();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(8 * sorted.size());
        long last = 0;
        for (Hold hold : sorted) {
            push(bytes, hold.startNs - last);
            push(bytes, hold.endNs - hold.startNs);
            push(bytes, hold.lock);
            push(bytes, hold.worker);
            last = hold.startNs;
        }
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }

    /** LEB128: seven bits a byte, lowest first, the top bit says that more follow. */
    private static void push(ByteArrayOutputStream bytes, long number) {
        long rest = number;
        while (rest >= 0x80) {
            bytes.write((int) (rest & 0x7f) | 0x80);
            rest >>>= 7;
        }
        bytes.write((int) rest);
    }
}
