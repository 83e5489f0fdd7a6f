package locktopus.peer.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.IntCountsHistogram;

/** The records of one worker, or of many after merging. All times are nanoseconds since the start. */
final class Recorder {
    static final String ACQUIRE = "acquire";
    static final String RELEASE = "release";
    static final String PAIR = "acquire+release";

    private static final int MAX_INTERVALS = 6_000;

    private final String seriesOf;
    private final long intervalNs;
    private final Map<String, Histogram> operations = new TreeMap<>();
    private final Map<Integer, Long> grants = new TreeMap<>();
    private final Map<String, Long> errors = new TreeMap<>();
    private final List<Hold> holds = new ArrayList<>();
    private final List<IntCountsHistogram> intervals = new ArrayList<>();

    /** Keeps a time series of {@code seriesOf} in steps of {@code intervalNs}. */
    Recorder(String seriesOf, long intervalNs) {
        this.seriesOf = seriesOf;
        this.intervalNs = intervalNs;
    }

    void record(String operation, long startNs, long endNs) {
        long latencyNs = endNs - startNs;
        Histograms.record(operations.computeIfAbsent(operation, name -> Histograms.ofLatencies()), latencyNs);
        if (operation.equals(seriesOf)) {
            int at = (int) Math.min(endNs / intervalNs, MAX_INTERVALS);
            reach(at + 1);
            if (at < MAX_INTERVALS) {
                Histograms.record(intervals.get(at), latencyNs);
            }
        }
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
        reach(other.intervals.size());
        for (int at = 0; at < other.intervals.size(); at++) {
            intervals.get(at).add(other.intervals.get(at));
        }
    }

    Wire toWire(int worker) {
        Map<String, Histograms.Stored> stored = new TreeMap<>();
        operations.forEach((name, histogram) -> stored.put(name, Histograms.Stored.of(histogram)));
        // Empty text means an interval in which nothing ended.
        List<String> packed =
                intervals.stream().map(one -> one.getTotalCount() == 0 ? "" : Histograms.pack(one)).toList();
        return new Wire(worker, stored, grants, Hold.pack(holds), errors, seriesOf, intervalNs, packed);
    }

    private void reach(int size) {
        while (intervals.size() < Math.min(size, MAX_INTERVALS)) {
            intervals.add(Histograms.ofInterval());
        }
    }

    /** The harness's {@code WireRecorder}. */
    record Wire(
            int worker,
            Map<String, Histograms.Stored> operations,
            Map<Integer, Long> grants,
            String holds,
            Map<String, Long> errors,
            String seriesOf,
            long intervalNs,
            List<String> intervals) {}
}
