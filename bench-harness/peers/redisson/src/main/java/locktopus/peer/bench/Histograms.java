package locktopus.peer.bench;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import org.HdrHistogram.AbstractHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.IntCountsHistogram;

/** Histograms as the harness stores them: HdrHistogram V2, deflated, in base64. */
final class Histograms {
    private static final int DIGITS = 3;
    /** Two are enough for a chart, and there is a histogram for each interval of each worker. */
    private static final int INTERVAL_DIGITS = 2;

    private static final long CEILING_NS = 60_000_000_000L;

    private Histograms() {}

    static Histogram ofLatencies() {
        return new Histogram(DIGITS);
    }

    static IntCountsHistogram ofInterval() {
        return new IntCountsHistogram(INTERVAL_DIGITS);
    }

    /** Latencies are limited to between a nanosecond and a minute. */
    static void record(AbstractHistogram histogram, long latencyNs) {
        histogram.recordValue(Math.max(1, Math.min(latencyNs, CEILING_NS)));
    }

    static String pack(AbstractHistogram histogram) {
        ByteBuffer bytes = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(bytes);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(bytes.array(), length));
    }

    /** The harness's {@code StoredHistogram}. */
    record Stored(String v2DeflateBase64, Summary summary) {
        static Stored of(Histogram histogram) {
            return new Stored(pack(histogram), Summary.of(histogram));
        }
    }

    record Summary(
            long count, long minNs, long meanNs, long p50Ns, long p90Ns, long p99Ns, long p999Ns, long maxNs) {
        static Summary of(Histogram histogram) {
            return new Summary(
                    histogram.getTotalCount(),
                    histogram.getMinNonZeroValue(),
                    Math.round(histogram.getMean()),
                    histogram.getValueAtPercentile(50),
                    histogram.getValueAtPercentile(90),
                    histogram.getValueAtPercentile(99),
                    histogram.getValueAtPercentile(99.9),
                    histogram.getMaxValue());
        }
    }
}
