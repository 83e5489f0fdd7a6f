package locktopus.peer;

import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.redisson.config.Config;
import org.redisson.config.NameMapper;

/**
 * A Locktopus URL, as far as Redisson supports it. Never shown in messages, because it may contain a
 * password.
 */
final class ServerUrl {
    enum Shape {
        STANDALONE,
        SENTINEL,
        CLUSTER
    }

    /** Options that concern only clients in Rust, and change nothing on the servers. */
    private static final Set<String> IGNORED =
            Set.of("client", "timeout", "connect_timeout", "checks", "token_retention", "client_name");

    private static final Set<String> FOLLOWED = Set.of("renewed_lease", "namespace");

    private static final Pattern DURATION = Pattern.compile("(\\d{1,9})(ms|s|m)");
    private static final int SERVER_PORT = 6379;
    private static final int SENTINEL_PORT = 26379;

    final Shape shape;
    private final boolean encrypted;
    private final String user;
    private final String password;
    private final String[] addresses;
    private final String path;
    private final Map<String, String> options;

    ServerUrl(String url) {
        String[] schemeAndRest = halves(url, "://");
        String scheme = schemeAndRest[0].replace("valkey", "redis");
        encrypted = scheme.startsWith("rediss");
        shape =
                switch (scheme) {
                    case "redis", "rediss" -> Shape.STANDALONE;
                    case "redis-sentinel", "rediss-sentinel" -> Shape.SENTINEL;
                    case "redis-cluster", "rediss-cluster" -> Shape.CLUSTER;
                    default -> throw new IllegalArgumentException("Redisson knows no servers of the kind " + scheme);
                };
        String[] placeAndOptions = halves(schemeAndRest[1], "?");
        String[] authorityAndPath = halves(placeAndOptions[0], "/");
        path = decode(authorityAndPath[1]);
        options = options(placeAndOptions[1]);
        String authority = authorityAndPath[0];
        int at = authority.lastIndexOf('@');
        String[] login = halves(at < 0 ? "" : authority.substring(0, at), ":");
        user = login[0].isEmpty() ? null : decode(login[0]);
        password = login[1].isEmpty() ? null : decode(login[1]);
        addresses =
                Arrays.stream(authority.substring(at + 1).split(","))
                        .map(this::address)
                        .toArray(String[]::new);
    }

    /** Redisson's own defaults, except for what the URL says. */
    Config config() {
        Config config = new Config().setUsername(user).setPassword(password);
        if (options.containsKey("renewed_lease")) {
            config.setLockWatchdogTimeout(milliseconds(options.get("renewed_lease")));
        }
        if (options.containsKey("namespace")) {
            config.setNameMapper(inFront(options.get("namespace")));
        }
        switch (shape) {
            case STANDALONE -> config.useSingleServer()
                    .setAddress(addresses[0])
                    .setDatabase(database(path));
            case SENTINEL -> {
                String[] masterAndDatabase = halves(path, "/");
                config.useSentinelServers()
                        .addSentinelAddress(addresses)
                        .setMasterName(masterAndDatabase[0])
                        // One sentinel is enough for tests.
                        .setCheckSentinelsList(false)
                        .setDatabase(database(masterAndDatabase[1]));
            }
            case CLUSTER -> config.useClusterServers().addNodeAddress(addresses);
        }
        return config;
    }

    private String address(String hostAndPort) {
        boolean hasPort = hostAndPort.lastIndexOf(':') > hostAndPort.lastIndexOf(']');
        int port = shape == Shape.SENTINEL ? SENTINEL_PORT : SERVER_PORT;
        return (encrypted ? "rediss://" : "redis://") + hostAndPort + (hasPort ? "" : ":" + port);
    }

    private static Map<String, String> options(String query) {
        Map<String, String> options = new HashMap<>();
        for (String option : List.of(query.split("&"))) {
            String[] nameAndValue = halves(option, "=");
            String name = nameAndValue[0];
            if (FOLLOWED.contains(name)) {
                options.put(name, decode(nameAndValue[1]));
            } else if (!name.isEmpty() && !IGNORED.contains(name)) {
                throw new IllegalArgumentException("this peer cannot follow the option " + name + " of the URL");
            }
        }
        return options;
    }

    /** Puts a namespace in front of every name, as the option says. */
    private static NameMapper inFront(String namespace) {
        return new NameMapper() {
            @Override
            public String map(String name) {
                return namespace + name;
            }

            @Override
            public String unmap(String name) {
                return name.startsWith(namespace) ? name.substring(namespace.length()) : name;
            }
        };
    }

    private static int database(String text) {
        try {
            return text.isEmpty() ? 0 : Integer.parseInt(text);
        } catch (NumberFormatException bad) {
            throw new IllegalArgumentException("no number of a database: " + text, bad);
        }
    }

    private static long milliseconds(String duration) {
        Matcher found = DURATION.matcher(duration);
        if (!found.matches()) {
            throw new IllegalArgumentException("renewed_lease is not a duration such as 500ms, 3s or 1m: " + duration);
        }
        long factor =
                switch (found.group(2)) {
                    case "ms" -> 1;
                    case "s" -> 1_000;
                    default -> 60_000;
                };
        return Long.parseLong(found.group(1)) * factor;
    }

    private static String decode(String text) {
        // This decoder is for forms, in which a plus is a space.
        return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }

    /** The parts before and after a separator; without one the second part is empty. */
    private static String[] halves(String text, String separator) {
        int at = text.indexOf(separator);
        return at < 0
                ? new String[] {text, ""}
                : new String[] {text.substring(0, at), text.substring(at + separator.length())};
    }
}
