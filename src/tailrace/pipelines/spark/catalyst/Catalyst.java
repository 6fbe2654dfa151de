import java.io.*;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.atomic.*;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.analysis.*;
import org.apache.spark.sql.catalyst.catalog.*;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.optimizer.*;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser$;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.execution.arrow.ArrowWriter;
import org.apache.spark.sql.execution.arrow.ArrowWriter$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.*;
import org.apache.spark.sql.util.ArrowUtils$;
import org.apache.spark.sql.vectorized.*;

/**
 * Spark's analyser and generated code behind a Unix socket, without a session.
 *
 * A request is a header (JSON: what to do, and the texts of expressions) and an Arrow IPC stream
 * of their columns; each has its length before it, 4 bytes, big-endian. The answer is one byte (0
 * good, 1 an error), the length in 4 bytes and the bytes: types as JSON, an Arrow stream of the
 * results, or an error as JSON. The process ends by itself when nobody has been connected for a
 * while.
 */
public class Catalyst {
    static final int KEPT = 200;
    static final int LARGEST = 1 << 30;
    static final AtomicInteger open = new AtomicInteger();
    static final AtomicLong left = new AtomicLong(System.nanoTime());
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        final Path path = Paths.get(arguments[0]);
        final long idle = Long.parseLong(arguments[1]) * 1000000L;
        ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(path));
        Thread watch = new Thread() {
            public void run() {
                while (true) {
                    try { Thread.sleep(200L); } catch (InterruptedException e) { return; }
                    if (open.get() == 0 && System.nanoTime() - left.get() > idle) {
                        try { Files.deleteIfExists(path); } catch (IOException e) { }
                        Runtime.getRuntime().halt(0);
                    }
                }
            }
        };
        watch.setDaemon(true);
        watch.start();
        while (true) {
            final SocketChannel channel = server.accept();
            open.incrementAndGet();
            Thread thread = new Thread(null, new Connection(channel), "connection", 16L << 20);
            thread.setDaemon(true);
            thread.start();
        }
    }

    static class Connection implements Runnable {
        final SocketChannel channel;
        final RootAllocator allocator = new RootAllocator();
        final LinkedHashMap prepared = new LinkedHashMap(16, 0.75f, true) {
            protected boolean removeEldestEntry(Map.Entry eldest) { return size() > KEPT; }
        };

        Connection(SocketChannel channel) { this.channel = channel; }

        public void run() {
            try {
                SQLConf conf = SQLConf$.MODULE$.get();
                conf.setConfString("spark.sql.session.timeZone", "UTC");
                conf.setConfString("spark.sql.ansi.enabled", "true");
                conf.setConfString("spark.sql.geospatial.enabled", "true");
                while (true) {
                    byte[] header = read();
                    if (header == null) return;
                    byte[] columns = read();
                    if (columns == null) return;
                    answer(header, columns);
                }
            } catch (Throwable problem) {
                problem.printStackTrace();
            } finally {
                try { channel.close(); } catch (IOException e) { }
                left.set(System.nanoTime());
                open.decrementAndGet();
            }
        }

        byte[] read() throws IOException {
            ByteBuffer length = ByteBuffer.allocate(4);
            if (!fill(length)) return null;
            int size = length.getInt(0);
            if (size < 0 || size > LARGEST) throw new IOException("a request of " + size + " bytes");
            ByteBuffer content = ByteBuffer.allocate(size);
            return fill(content) ? content.array() : null;
        }

        boolean fill(ByteBuffer buffer) throws IOException {
            while (buffer.hasRemaining()) if (channel.read(buffer) < 0) return false;
            return true;
        }

        void write(int status, byte[] content) throws IOException {
            ByteBuffer buffer = ByteBuffer.allocate(5 + content.length);
            buffer.put((byte) status).putInt(content.length).put(content).flip();
            while (buffer.hasRemaining()) channel.write(buffer);
        }

        void answer(byte[] header, byte[] columns) throws IOException {
            byte[] found;
            try {
                Map asked = (Map) JSON.readValue(header, Map.class);
                SQLConf$.MODULE$.get().setConfString(
                    "spark.sql.timeType.enabled", String.valueOf(asked.get("times")));
                know((List) asked.get("functions"));
                found = work((String) asked.get("do"), (List) asked.get("texts"), header, columns);
            } catch (Throwable problem) {
                write(1, JSON.writeValueAsBytes(told(problem)));
                return;
            }
            write(0, found);
        }

        byte[] work(String what, List texts, byte[] header, byte[] columns) throws Exception {
            if (what.equals("functions")) return JSON.writeValueAsBytes(functions());
            ArrowStreamReader reader =
                new ArrowStreamReader(new ByteArrayInputStream(columns), allocator);
            try {
                VectorSchemaRoot root = reader.getVectorSchemaRoot();
                String name = root.getSchema().toJson() + texts.toString();
                Prepared plan = (Prepared) prepared.get(name);
                if (plan == null) {
                    plan = new Prepared(root.getSchema(), texts);
                    prepared.put(name, plan);
                }
                if (what.equals("types")) return JSON.writeValueAsBytes(plan.types());
                // An expression that throws may keep what it has gathered (the builder of a map),
                // and would give it to the next row.
                prepared.remove(name);
                byte[] found = plan.evaluate(reader, allocator);
                prepared.put(name, plan);
                return found;
            } finally {
                reader.close();
            }
        }
    }

    static final FunctionRegistry REGISTRY =
        ((SimpleFunctionRegistry) FunctionRegistry$.MODULE$.builtin()).clone();
    static final Map LOADERS = new HashMap();

    /**
     * Make functions of jars known by their names, which say what is in the jars. A class is one of
     * Spark's Java functions (UDF0 to UDF22), or a function of Scala, whose type must be told.
     */
    static synchronized void know(List functions) throws Exception {
        for (int i = 0; functions != null && i < functions.size(); i++) {
            Map one = (Map) functions.get(i);
            FunctionIdentifier name = new FunctionIdentifier((String) one.get("name"),
                scala.Option.apply("builtin"), scala.Option.apply("system"));
            if (REGISTRY.functionExists(name)) continue;
            Object contents = one.get("contents");
            ClassLoader loader = (ClassLoader) LOADERS.get(contents);
            if (loader == null) {
                List jars = (List) one.get("jars");
                java.net.URL[] urls = new java.net.URL[jars.size()];
                for (int j = 0; j < urls.length; j++)
                    urls[j] = Paths.get((String) jars.get(j)).toUri().toURL();
                loader = new java.net.URLClassLoader(urls, Catalyst.class.getClassLoader());
                LOADERS.put(contents, loader);
            }
            String shown = (String) one.get("shown");
            String className = (String) one.get("class");
            Class type;
            try {
                type = Class.forName(className, true, loader);
            } catch (Throwable missing) {
                throw new IllegalArgumentException(
                    "function " + shown + ": its jars have no class " + className + " that loads: " + missing);
            }
            UserFunction made = new UserFunction(shown, type, (String) one.get("returns"));
            made.body();
            REGISTRY.registerFunction(name, new ExpressionInfo(className, shown), made);
        }
    }

    /** Makes calls of a class, each with an object of its own. */
    static class UserFunction extends scala.runtime.AbstractFunction1 {
        final String shown;
        final Class type;
        final DataType returns;
        final int takes;

        UserFunction(String shown, Class type, String returns) {
            this.shown = shown;
            this.type = type;
            int found = -1;
            java.lang.reflect.Type said = null;
            for (int n = 0; n <= 22; n++) {
                Class java = called("org.apache.spark.sql.api.java.UDF" + n);
                if (java.isAssignableFrom(type) || called("scala.Function" + n).isAssignableFrom(type)) {
                    found = n;
                    said = said(type, java);
                    break;
                }
            }
            takes = found;
            if (takes < 0)
                throw new IllegalArgumentException("function " + shown + ": " + type.getName()
                    + " implements neither org.apache.spark.sql.api.java.UDF1 (to UDF22) nor a function of Scala");
            if (!returns.isEmpty()) this.returns = CatalystSqlParser$.MODULE$.parseDataType(returns);
            else if (said != null)
                this.returns = (DataType) org.apache.spark.sql.catalyst.JavaTypeInference$.MODULE$
                    .inferDataType(said)._1();
            else
                throw new IllegalArgumentException(
                    "function " + shown + ": " + type.getName() + " does not say its type; declare what it returns");
        }

        static Class called(String name) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException missing) {
                throw new IllegalStateException(missing);
            }
        }

        /** What a class says it returns: the last parameter of the interface. */
        static java.lang.reflect.Type said(Class type, Class face) {
            for (Class one = type; one != null; one = one.getSuperclass()) {
                java.lang.reflect.Type[] faces = one.getGenericInterfaces();
                for (int i = 0; i < faces.length; i++) {
                    if (!(faces[i] instanceof java.lang.reflect.ParameterizedType)) continue;
                    java.lang.reflect.ParameterizedType face1 = (java.lang.reflect.ParameterizedType) faces[i];
                    if (face1.getRawType() != face) continue;
                    java.lang.reflect.Type[] parts = face1.getActualTypeArguments();
                    java.lang.reflect.Type last = parts[parts.length - 1];
                    return last instanceof java.lang.reflect.TypeVariable ? null : last;
                }
            }
            return null;
        }

        /** An object of the class, as a function of Scala. */
        Object body() throws Exception {
            Object made;
            try {
                made = type.getName().endsWith("$")
                    ? type.getField("MODULE$").get(null)
                    : type.getDeclaredConstructor(new Class[0]).newInstance(new Object[0]);
            } catch (Exception hidden) {
                throw new IllegalArgumentException("function " + shown + ": " + type.getName()
                    + " needs a public constructor without parameters: " + hidden);
            }
            if (called("scala.Function" + takes).isInstance(made)) return made;
            Object scala = org.apache.spark.sql.internal.ToScalaUDF$.MODULE$;
            java.lang.reflect.Method to = scala.getClass().getMethod(
                "apply", new Class[] {called("org.apache.spark.sql.api.java.UDF" + takes)});
            return to.invoke(scala, new Object[] {made});
        }

        public Object apply(Object given) {
            scala.collection.immutable.Seq children = (scala.collection.immutable.Seq) given;
            if (children.length() != takes)
                throw new IllegalArgumentException("function " + shown + " takes " + takes
                    + (takes == 1 ? " argument, not " : " arguments, not ") + children.length());
            scala.collection.immutable.Seq none = Prepared.list(new ArrayList());
            try {
                return new ScalaUDF(body(), returns, children, none, scala.Option.empty(),
                    scala.Option.apply(shown), true, true);
            } catch (RuntimeException problem) {
                throw problem;
            } catch (Exception problem) {
                throw new IllegalStateException(problem);
            }
        }
    }

    /** The names of all functions that Spark has. */
    static List functions() {
        List found = new ArrayList();
        scala.collection.Iterator names = FunctionRegistry$.MODULE$.builtin().listFunction().iterator();
        while (names.hasNext())
            found.add(((org.apache.spark.sql.catalyst.FunctionIdentifier) names.next()).funcName());
        return found;
    }

    static Map told(Throwable problem) {
        Map told = new LinkedHashMap();
        Throwable cause = problem;
        while (!(cause instanceof org.apache.spark.SparkThrowable)
                && cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
        told.put("class", cause.getClass().getName());
        told.put("message", cause.getMessage() == null ? cause.toString() : cause.getMessage());
        if (cause instanceof org.apache.spark.SparkThrowable) {
            told.put("condition", ((org.apache.spark.SparkThrowable) cause).getCondition());
            told.put("state", ((org.apache.spark.SparkThrowable) cause).getSqlState());
        }
        told.put("analysis", Boolean.valueOf(cause instanceof AnalysisException));
        return told;
    }

    static final Analyzer ANALYZER = new Analyzer(new SessionCatalog(new InMemoryCatalog(
            new org.apache.spark.SparkConf(false), new org.apache.hadoop.conf.Configuration(false)),
        REGISTRY, TableFunctionRegistry$.MODULE$.builtin()));

    /**
     * Expressions as generated code: the projections that make them, one behind the other. The
     * code is generated when values are first asked for; types need none.
     */
    static class Prepared {
        final StructType given;
        final StructType result;
        final List chain = new ArrayList();
        scala.collection.immutable.Seq input;
        UnsafeProjection first;
        List steps;

        Prepared(Schema schema, List texts) throws Exception {
            given = ArrowUtils$.MODULE$.fromArrowSchema(schema);
            scala.collection.immutable.Seq attributes = DataTypeUtils$.MODULE$.toAttributes(given);
            List named = new ArrayList();
            for (int i = 0; i < texts.size(); i++) {
                Expression parsed = CatalystSqlParser$.MODULE$.parseExpression((String) texts.get(i));
                named.add(new Alias(parsed, "x" + i, NamedExpression$.MODULE$.newExprId(),
                    list(new ArrayList()), scala.Option.empty(), list(new ArrayList())));
            }
            LogicalPlan plan = new Project(list(named), new LocalRelation(
                attributes, list(new ArrayList()), false, scala.Option.empty()));
            plan = ANALYZER.executeAndCheck(plan, new QueryPlanningTracker(scala.Option.empty()));
            refuse(plan);
            plan = (LogicalPlan) ReplaceExpressions$.MODULE$.apply(plan);
            plan = (LogicalPlan) RewriteWithExpression$.MODULE$.apply(plan);
            plan = (LogicalPlan) ReplaceUpdateFieldsExpression$.MODULE$.apply(plan);
            plan = (LogicalPlan) ConstantFolding$.MODULE$.apply(plan);
            while (plan instanceof Project) {
                chain.add(0, plan);
                plan = ((Project) plan).child();
            }
            if (!(plan instanceof LocalRelation))
                throw new IllegalArgumentException("no expression of columns: " + plan.nodeName());
            input = ((LocalRelation) plan).output();
            result = DataTypeUtils$.MODULE$.fromAttributes(
                chain.isEmpty() ? input : ((Project) chain.get(chain.size() - 1)).output());
        }

        void generate() {
            if (steps != null) return;
            List made = new ArrayList();
            scala.collection.immutable.Seq from = input;
            for (int i = 0; i < chain.size(); i++) {
                Project one = (Project) chain.get(i);
                made.add(UnsafeProjection.create(one.projectList(), from));
                from = one.output();
            }
            first = UnsafeProjection.create(given);
            for (int i = 0; i < made.size(); i++) ((UnsafeProjection) made.get(i)).initialize(0);
            steps = made;
        }

        static scala.collection.immutable.Seq list(List items) {
            return scala.jdk.javaapi.CollectionConverters.asScala(items).toList();
        }

        static void refuse(LogicalPlan plan) {
            scala.collection.Iterator all = plan.expressions().iterator();
            while (all.hasNext()) {
                Expression one = (Expression) all.next();
                if (!one.deterministic())
                    throw new IllegalArgumentException(
                        "gives another answer each time: " + one.children().head().toString());
                refuseClock(one);
            }
        }

        /** What reads the clock by itself: the clock of a view is that of its tick. */
        static void refuseClock(Expression one) {
            String name = one.getClass().getSimpleName();
            boolean clock = name.startsWith("Current") || name.equals("Now") || name.equals("LocalTimestamp");
            if (one instanceof Cast) {
                DataType to = one.dataType();
                boolean moment = to instanceof TimestampType || to instanceof TimestampNTZType;
                clock = moment && ((Cast) one).child().dataType().typeName().startsWith("time(");
            }
            if (clock)
                throw new IllegalArgumentException("depends on the day: " + one.toString());
            scala.collection.Iterator parts = one.children().iterator();
            while (parts.hasNext()) refuseClock((Expression) parts.next());
        }

        List types() throws Exception {
            List found = new ArrayList();
            StructField[] fields = result.fields();
            for (int i = 0; i < fields.length; i++)
                found.add(JSON.readValue(fields[i].dataType().json(), Object.class));
            return found;
        }

        byte[] evaluate(ArrowStreamReader reader, RootAllocator allocator) throws Exception {
            generate();
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            VectorSchemaRoot made = VectorSchemaRoot.create(
                ArrowUtils$.MODULE$.toArrowSchema(result, "UTC", false, false, false), allocator);
            try {
                ArrowWriter writer = ArrowWriter$.MODULE$.create(made);
                ArrowStreamWriter stream = new ArrowStreamWriter(made, null, out);
                stream.start();
                while (reader.loadNextBatch()) {
                    VectorSchemaRoot root = reader.getVectorSchemaRoot();
                    List vectors = root.getFieldVectors();
                    ColumnVector[] columns = new ColumnVector[vectors.size()];
                    for (int i = 0; i < columns.length; i++)
                        columns[i] = new ArrowColumnVector((FieldVector) vectors.get(i));
                    ColumnarBatch batch = new ColumnarBatch(columns, root.getRowCount());
                    Iterator rows = batch.rowIterator();
                    while (rows.hasNext()) {
                        InternalRow row = first.apply((InternalRow) rows.next());
                        for (int i = 0; i < steps.size(); i++)
                            row = ((UnsafeProjection) steps.get(i)).apply(row);
                        writer.write(row);
                    }
                    writer.finish();
                    stream.writeBatch();
                    writer.reset();
                }
                stream.end();
                return out.toByteArray();
            } finally {
                made.close();
            }
        }
    }
}
