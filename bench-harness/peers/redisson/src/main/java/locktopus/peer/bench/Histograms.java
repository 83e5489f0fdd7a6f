package locktopus.peer.bench;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import org.HdrHistogram.Histogram;

/** Histograms as the harness stores them: HdrHistogram V2, deflated, in base64. */
final class Histograms {
    private static final int DIGITS = 3;
    private static final long CEILING_NS = 60_000_000_000L;

    private Histograms() {}

    static Histogram ofLatencies() {
        return new Histogram(DIGITS);
    }

    /** Latencies are limited to between a nanosecond and a minute. */
    static void record(Histogram histogram, long latencyNs) {
        histogram.recordValue(Math.max(1, Math.min(latencyNs, CEILING_NS)));
    }

    static String pack(Histogram histogram) {
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
