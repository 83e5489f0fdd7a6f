package locktopus.peer.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;

/** The records of one worker, or of many after merging. All times are nanoseconds since the start. */
final class Recorder {
    static final String ACQUIRE = "acquire";
    static final String RELEASE = "release";
    static final String PAIR = "acquire+release";

    private final Map<String, Histogram> operations = new TreeMap<>();
    private final Map<Integer, Long> grants = new TreeMap<>();
    private final Map<String, Long> errors = new TreeMap<>();
    private final List<Hold> holds = new ArrayList<>();

    void record(String operation, long startNs, long endNs) {
        Histograms.record(operations.computeIfAbsent(operation, name -> Histograms.ofLatencies()), endNs - startNs);
    }

    /** Counts a grant, and keeps the hold for the overlap check. */
    void held(Hold hold) {
        grants.merge(hold.worker(), 1L, Long::sum);
        holds.add(hold);
    }

    void error(String kind) {
        errors.merge(kind, 1L, Long::sum);
    }

    void merge(Recorder other) {
        other.operations.forEach(
                (name, theirs) -> operations.computeIfAbsent(name, any -> Histograms.ofLatencies()).add(theirs));
        other.grants.forEach((worker, count) -> grants.merge(worker, count, Long::sum));
        other.errors.forEach((kind, count) -> errors.merge(kind, count, Long::sum));
        holds.addAll(other.holds);
    }

    Wire toWire(int worker) {
        Map<String, Histograms.Stored> stored = new TreeMap<>();
        operations.forEach((name, histogram) -> stored.put(name, Histograms.Stored.of(histogram)));
        return new Wire(worker, stored, grants, Hold.pack(holds), errors);
    }

    /** The harness's {@code WireRecorder}. */
    record Wire(
            int worker,
            Map<String, Histograms.Stored> operations,
            Map<Integer, Long> grants,
            String holds,
            Map<String, Long> errors) {}
}
