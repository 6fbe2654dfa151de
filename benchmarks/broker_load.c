/* The load of `benchmarks.broker`, in C so that the client is not the limit.
 *
 *   broker_load produce HOST PORT FRAMES RESULT_AT REQUESTS CONNECTIONS IN_FLIGHT
 *   broker_load consume HOST PORT TOPIC PARTITIONS MESSAGES PARTITION_MAX_BYTES FIRST PASSES
 *   broker_load ack     HOST PORT FRAMES RESULT_AT ROUNDS
 *   broker_load end     HOST PORT FRAMES RESULT_AT ROUNDS TOPIC
 *
 * FRAMES holds whole Produce requests (version 9) one after another, built before the
 * clock starts; RESULT_AT is where an answer, without its length, holds the error code
 * and base offset of its partition. `produce` sends the frames in turn and prints
 * seconds; `consume` (Fetch version 11) reads all partitions from the offset FIRST, so
 * many times, and prints messages, bytes and seconds, counted by the headers of the batches; `ack` and `end`
 * print one line of microseconds for each message. Any error ends it with status 1.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 200, VECTORS = 64, CONNECTIONS_LIMIT = 64, PARTITIONS_LIMIT = 256 };

static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int64_t number(const unsigned char *at, int size) {
    int64_t value = (signed char)at[0];
    for (int i = 1; i < size; i++) value = (value << 8) | at[i];
    return value;
}

static unsigned char *put(unsigned char *at, int64_t value, int size) {
    for (int i = size - 1; i >= 0; i--, value >>= 8) at[i] = (unsigned char)value;
    return at + size;
}

static int connected(const char *host, const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("%s is not an address", host);
    if (connect(sock, (struct sockaddr *)&address, sizeof address)) fail("connect: %m");
    setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return sock;
}

/* What is received and not used yet; the buffer stays small enough for the cache. */
struct input {
    int sock;
    size_t start, end;
    unsigned char bytes[1 << 20];
};

static int receive(struct input *in) {
    if (in->start == in->end) in->start = in->end = 0;
    if (in->start && in->end == sizeof in->bytes) {
        memmove(in->bytes, in->bytes + in->start, in->end - in->start);
        in->end -= in->start;
        in->start = 0;
    }
    ssize_t got = recv(in->sock, in->bytes + in->end, sizeof in->bytes - in->end, 0);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) fail("the broker closed the connection: %m");
    in->end += (size_t)got;
    return 1;
}

static unsigned char *need(struct input *in, size_t size) {
    if (in->start + size > sizeof in->bytes) {
        memmove(in->bytes, in->bytes + in->start, in->end - in->start);
        in->end -= in->start;
        in->start = 0;
    }
    while (in->end - in->start < size) receive(in);
    unsigned char *at = in->bytes + in->start;
    in->start += size;
    return at;
}

static void skip(struct input *in, size_t size) {
    while (size) {
        size_t have = in->end - in->start;
        if (have > size) have = size;
        in->start += have;
        size -= have;
        if (size) receive(in);
    }
}

static void send_all(int sock, const unsigned char *bytes, size_t size) {
    while (size) {
        ssize_t sent = send(sock, bytes, size, MSG_NOSIGNAL);
        if (sent < 0) fail("send: %m");
        bytes += sent;
        size -= (size_t)sent;
    }
}

struct frames {
    int count;
    struct iovec *each;
};

static struct frames load(const char *path) {
    struct stat about;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &about)) fail("%s: %m", path);
    size_t size = (size_t)about.st_size;
    unsigned char *bytes = malloc(size);
    for (size_t done = 0; done < size;) {
        ssize_t got = read(file, bytes + done, size - done);
        if (got <= 0) fail("%s: %m", path);
        done += (size_t)got;
    }
    close(file);
    struct frames found = {0, NULL};
    for (size_t at = 0; at < size;) {
        size_t length = 4 + (size_t)number(bytes + at, 4);
        found.each = realloc(found.each, sizeof *found.each * (size_t)(found.count + 1));
        found.each[found.count++] = (struct iovec){bytes + at, length};
        at += length;
    }
    return found;
}

/* The base offset in a Produce answer that lies at `answer`, without its length. */
static int64_t checked(const unsigned char *answer, int result_at) {
    int64_t error = number(answer + result_at, 2);
    if (error) fail("produce failed with %lld", (long long)error);
    return number(answer + result_at + 2, 8);
}

struct sender {
    struct input in;
    int first, waiting; /* frames in the order of sending; `waiting` are not sent whole */
    size_t sent;        /* bytes of the first of them */
};

static void send_some(struct sender *sender, struct frames frames, int stride) {
    while (sender->waiting) {
        struct iovec vectors[VECTORS];
        int count = 0;
        size_t total = 0;
        for (; count < sender->waiting && count < VECTORS && total < (4u << 20); count++) {
            vectors[count] = frames.each[(sender->first + count * stride) % frames.count];
            if (count == 0) {
                vectors[0].iov_base = (char *)vectors[0].iov_base + sender->sent;
                vectors[0].iov_len -= sender->sent;
            }
            total += vectors[count].iov_len;
        }
        ssize_t sent = writev(sender->in.sock, vectors, count);
        if (sent < 0 && errno == EAGAIN) return;
        if (sent < 0) fail("send: %m");
        for (int i = 0; sent && i < count; i++) {
            if ((size_t)sent < vectors[i].iov_len) {
                sender->sent = (i ? 0 : sender->sent) + (size_t)sent;
                break;
            }
            sent -= (ssize_t)vectors[i].iov_len;
            sender->first += stride;
            sender->waiting--;
            sender->sent = 0;
        }
    }
}

static void produce(char **given) {
    struct frames frames = load(given[2]);
    int result_at = atoi(given[3]), wanted = atoi(given[4]), connections = atoi(given[5]);
    int in_flight = atoi(given[6]), begun = 0, answered = 0;
    if (connections > CONNECTIONS_LIMIT) fail("too many connections");
    static struct sender senders[CONNECTIONS_LIMIT];
    struct pollfd polled[CONNECTIONS_LIMIT];
    for (int i = 0; i < connections; i++) {
        senders[i].in.sock = connected(given[0], given[1]);
        fcntl(senders[i].in.sock, F_SETFL, O_NONBLOCK);
        senders[i].first = i;
    }
    double started = now();
    for (int i = 0; i < connections; i++) {
        for (int n = 0; n < in_flight && begun < wanted; n++, begun++) senders[i].waiting++;
        send_some(&senders[i], frames, connections);
    }
    while (answered < wanted) {
        for (int i = 0; i < connections; i++) {
            short events = senders[i].waiting ? POLLIN | POLLOUT : POLLIN;
            polled[i] = (struct pollfd){senders[i].in.sock, events, 0};
        }
        if (poll(polled, (nfds_t)connections, 60000) <= 0) fail("no answer within a minute");
        for (int i = 0; i < connections; i++) {
            struct input *in = &senders[i].in;
            if (polled[i].revents & (POLLIN | POLLHUP | POLLERR) && receive(in)) {
                while (in->end - in->start >= 4) {
                    size_t size = 4 + (size_t)number(in->bytes + in->start, 4);
                    if (in->end - in->start < size) break;
                    checked(in->bytes + in->start + 4, result_at);
                    in->start += size;
                    answered++;
                    if (begun < wanted) begun++, senders[i].waiting++;
                }
            }
            send_some(&senders[i], frames, connections);
        }
    }
    printf("%.6f\n", now() - started);
}

/* A Fetch request (version 11) for `count` partitions; its size. */
static size_t fetch(unsigned char *out, const char *topic, const int64_t *offsets, int count,
                    int64_t partition_max_bytes, int wait_ms) {
    unsigned char *at = put(out + 4, 1, 2);
    at = put(put(put(at, 11, 2), 1, 4), -1, 2);           /* version, correlation, client */
    at = put(put(put(put(at, -1, 4), wait_ms, 4), 1, 4), 50 << 20, 4);
    at = put(put(put(put(at, 0, 1), 0, 4), -1, 4), 1, 4); /* isolation, session, topics */
    at = put(at, (int64_t)strlen(topic), 2);
    memcpy(at, topic, strlen(topic));
    at = put(at + strlen(topic), count, 4);
    for (int i = 0; i < count; i++) {
        at = put(put(put(at, i, 4), -1, 4), offsets[i], 8);
        at = put(put(at, -1, 8), partition_max_bytes, 4);
    }
    at = put(put(at, 0, 4), 0, 2);
    put(out, at - out - 4, 4);
    return (size_t)(at - out);
}

/* Read one Fetch answer as it arrives; moves the offsets on. */
static void fetched(struct input *in, int64_t *offsets, int64_t *messages, int64_t *bytes) {
    number(need(in, 4), 4);
    unsigned char *at = need(in, 4 + 4 + 2 + 4 + 4);
    if (number(at + 8, 2)) fail("fetch failed with %d", (int)number(at + 8, 2));
    int64_t topics = number(at + 14, 4);
    while (topics--) {
        skip(in, (size_t)number(need(in, 2), 2));
        int64_t partitions = number(need(in, 4), 4);
        while (partitions--) {
            at = need(in, 4 + 2 + 24 + 4);
            int64_t index = number(at, 4), aborted = number(at + 30, 4);
            if (number(at + 4, 2)) fail("fetch failed with %d", (int)number(at + 4, 2));
            skip(in, aborted > 0 ? (size_t)aborted * 16 : 0);
            int64_t left = number(need(in, 8) + 4, 4);
            while (left >= 61) {
                at = need(in, 61);
                int64_t base = number(at, 8), size = 12 + number(at + 8, 4);
                int64_t count = number(at + 23, 4) + 1;
                if (size > left) { /* a batch that was cut */
                    left -= 61;
                    break;
                }
                skip(in, (size_t)size - 61);
                offsets[index] = base + count;
                *messages += count;
                *bytes += size;
                left -= size;
            }
            if (left > 0) skip(in, (size_t)left);
        }
    }
}

static void consume(char **given) {
    static struct input in;
    static unsigned char request[64 * PARTITIONS_LIMIT];
    int64_t offsets[PARTITIONS_LIMIT] = {0}, messages = 0, bytes = 0, wanted = atoll(given[4]);
    int partitions = atoi(given[3]);
    if (partitions > PARTITIONS_LIMIT) fail("too many partitions");
    in.sock = connected(given[0], given[1]);
    double started = now();
    for (int pass = 1; pass <= atoi(given[7]); pass++) {
        for (int i = 0; i < partitions; i++) offsets[i] = atoll(given[6]);
        while (messages < wanted * pass) {
            size_t size = fetch(request, given[2], offsets, partitions, atoll(given[5]), 500);
            send_all(in.sock, request, size);
            fetched(&in, offsets, &messages, &bytes);
        }
    }
    printf("%lld %lld %.6f\n", (long long)messages, (long long)bytes, now() - started);
}

static int64_t answer(struct input *in, int result_at) {
    size_t size = (size_t)number(need(in, 4), 4);
    return checked(need(in, size), result_at);
}

static void acknowledge(char **given) {
    static struct input in;
    struct frames frames = load(given[2]);
    int result_at = atoi(given[3]), rounds = atoi(given[4]);
    in.sock = connected(given[0], given[1]);
    for (int i = 0; i < rounds + WARM_UP; i++) {
        double before = now();
        send_all(in.sock, frames.each[0].iov_base, frames.each[0].iov_len);
        answer(&in, result_at);
        double after = now();
        if (i >= WARM_UP) printf("%.1f\n", (after - before) * 1e6);
    }
}

static void end_to_end(char **given) {
    static struct input writer, reader;
    unsigned char request[1024];
    struct frames frames = load(given[2]);
    int result_at = atoi(given[3]), rounds = atoi(given[4]);
    writer.sock = connected(given[0], given[1]);
    reader.sock = connected(given[0], given[1]);
    send_all(writer.sock, frames.each[0].iov_base, frames.each[0].iov_len);
    int64_t offset = answer(&writer, result_at) + 1;
    for (int i = 0; i < rounds + WARM_UP; i++) {
        int64_t messages = 0, bytes = 0;
        send_all(reader.sock, request, fetch(request, given[5], &offset, 1, 1 << 20, 10000));
        /* Let the fetch be parked before the message is sent. */
        for (double until = now() + 0.0006; now() < until;) continue;
        double before = now();
        send_all(writer.sock, frames.each[0].iov_base, frames.each[0].iov_len);
        fetched(&reader, &offset, &messages, &bytes);
        double after = now();
        if (messages != 1) fail("%lld messages came instead of one", (long long)messages);
        answer(&writer, result_at);
        if (i >= WARM_UP) printf("%.1f\n", (after - before) * 1e6);
    }
}

int main(int count, char **given) {
    static const struct {
        const char *name;
        int arguments;
        void (*run)(char **);
    } commands[] = {
        {"produce", 7, produce}, {"consume", 8, consume}, {"ack", 5, acknowledge},
        {"end", 6, end_to_end},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (count >= 2 && !strcmp(given[1], commands[i].name) && count - 2 == commands[i].arguments)
            return commands[i].run(given + 2), 0;
    fail("usage: see the head of broker_load.c");
}
