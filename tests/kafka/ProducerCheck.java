import java.io.Reader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Stream;

/**
 * Gives producer.properties to the Java clients of several versions, in one process.
 *
 * <p>Arguments: pairs of a client's jar and a folder of files for it. Prints for each file its name,
 * whether a producer was made of it or what was refused, and the keys that the client ignores.
 */
public class ProducerCheck {
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < arguments.length; i += 2) {
            URL jar = Path.of(arguments[i]).toUri().toURL();
            Path folder = Path.of(arguments[i + 1]);
            try (URLClassLoader client = new URLClassLoader(new URL[] {jar});
                    Stream<Path> files = Files.list(folder)) {
                Thread.currentThread().setContextClassLoader(client);
                for (Path file : files.sorted().toList()) {
                    check(client, file, folder.getFileName() + "/" + file.getFileName());
                }
            }
        }
        System.exit(0); // Producers that wait for a broker would hold it up.
    }

    private static void check(ClassLoader client, Path file, String name) throws Exception {
        Properties given = new Properties();
        try (Reader reader = Files.newBufferedReader(file)) {
            given.load(reader);
        }
        TreeSet<String> ignored = new TreeSet<>(given.stringPropertyNames());
        String serializer = "org.apache.kafka.common.serialization.ByteArraySerializer";
        given.put("bootstrap.servers", "127.0.0.1:1");
        given.put("reconnect.backoff.ms", "600000");
        given.put("reconnect.backoff.max.ms", "600000");
        given.put("key.serializer", serializer);
        given.put("value.serializer", serializer);
        String outcome = "accepted";
        try {
            ignored.removeAll(known(client, given));
            Class<?> producer = client.loadClass("org.apache.kafka.clients.producer.KafkaProducer");
            producer.getConstructor(Properties.class).newInstance(given);
        } catch (InvocationTargetException refused) {
            Throwable cause = refused.getCause();
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            outcome = "refused: " + cause.getMessage();
        }
        System.out.println(String.join("\t", List.of(name, outcome, String.join(",", ignored))));
    }

    /** The keys that the client's configuration has a meaning for. */
    private static java.util.Set<?> known(ClassLoader client, Properties given) throws Exception {
        Class<?> type = client.loadClass("org.apache.kafka.clients.producer.ProducerConfig");
        Constructor<?> constructor = type.getDeclaredConstructor(Map.class);
        constructor.setAccessible(true);
        Object config = constructor.newInstance(given);
        Class<?> base = client.loadClass("org.apache.kafka.common.config.AbstractConfig");
        Field values = base.getDeclaredField("values");
        values.setAccessible(true);
        return ((Map<?, ?>) values.get(config)).keySet();
    }
}
