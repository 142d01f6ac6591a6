/* zone_requests.c - a zone for each request of a small HTTP-like server, on 127.0.0.1.
 *
 *     cc -pthread zone_requests.c $(pkg-config --cflags --libs huddle) && ./a.out
 *
 * Whatever a request needs lies in one zone, which is reset after the answer: nothing is freed piece by piece, no path
 * through the code can leak, and the next request uses the same memory. The limit keeps a hostile request small. */
#include <arpa/inet.h>
#include <huddle/zone.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUESTS = 200, REQUEST_BYTES_MAX = 64 << 10 };

struct header {
    const char *name, *value;
    struct header *next;
};

static void check(bool right, const char *what) {
    if (right) return;
    fprintf(stderr, "zone_requests: wrong: %s\n", what);
    exit(EXIT_FAILURE);
}

/* Reads up to an empty line, or to the end of the stream. NULL when that is too long. */
static char *read_head(huddle_zone_t *z, int socket) {
    char part[512], *head;
    size_t length;
    if (huddle_zone_buf_begin(z) != 0) return NULL;
    for (;;) {
        ssize_t n = read(socket, part, sizeof part);
        if (n > 0 && huddle_zone_buf_append(z, part, (size_t)n) != 0) {
            huddle_zone_buf_abandon(z);
            return NULL;
        }
        if (n <= 0 || (n >= 4 && memcmp(part + n - 4, "\r\n\r\n", 4) == 0)) break;
    }
    head = huddle_zone_buf_finish(z, &length);
    return head;
}

/* The lines "name: value"; the text is cut into pieces where it lies. */
static struct header *parse_headers(huddle_zone_t *z, char *lines) {
    struct header *first = NULL;
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\r\n", &rest); line != NULL; line = strtok_r(NULL, "\r\n", &rest)) {
        char *colon = strstr(line, ": ");
        struct header *h = colon != NULL ? huddle_new(z, struct header) : NULL;
        if (h == NULL) continue;
        *colon = '\0';
        *h = (struct header){line, colon + 2, first};
        first = h;
    }
    return first;
}

static const char *answer(huddle_zone_t *z, char *head) {
    char *end_of_line = head != NULL ? strstr(head, "\r\n") : NULL;
    if (end_of_line == NULL || strncmp(head, "GET /", 5) != 0) return "400 bad request\r\n\r\n";
    *end_of_line = '\0';
    char *path = head + 4, *space = strchr(path, ' ');
    if (space != NULL) *space = '\0';
    const char *user = "nobody";
    for (struct header *h = parse_headers(z, end_of_line + 2); h != NULL; h = h->next)
        if (strcmp(h->name, "User") == 0) user = h->value;
    const char *text = huddle_zone_printf(z, "200 ok\r\n\r\n%s asks for %s", user, path);
    return text != NULL ? text : "500 out of memory\r\n\r\n";
}

static void *serve(void *argument) {
    int listening = *(int *)argument;
    huddle_zone_options_t options = {.struct_size = sizeof options, .limit = REQUEST_BYTES_MAX, .name = "request"};
    huddle_zone_t *z = huddle_zone_open(&options);
    check(z != NULL, "open");
    for (int i = 0; i < REQUESTS; i++) {
        int socket = accept(listening, NULL, NULL);
        check(socket >= 0, "accept");
        const char *text = answer(z, read_head(z, socket));
        check(write(socket, text, strlen(text)) == (ssize_t)strlen(text), "write");
        close(socket);
        check(huddle_zone_reset(z) == 0, "reset"); /* text and headers are gone */
    }
    huddle_zone_close(z);
    return NULL;
}

/* The client: sends a request, returns the whole answer in the zone. */
static const char *ask(huddle_zone_t *z, const struct sockaddr_in *address, const char *request) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    check(s >= 0 && connect(s, (const struct sockaddr *)address, sizeof *address) == 0, "connect");
    check(write(s, request, strlen(request)) == (ssize_t)strlen(request), "send");
    check(shutdown(s, SHUT_WR) == 0 && huddle_zone_buf_begin(z) == 0, "shutdown");
    char part[512];
    for (ssize_t n; (n = read(s, part, sizeof part)) > 0;)
        check(huddle_zone_buf_append(z, part, (size_t)n) == 0, "append");
    close(s);
    return huddle_zone_buf_finish(z, NULL);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    check(listening >= 0 && bind(listening, (struct sockaddr *)&address, sizeof address) == 0 &&
              listen(listening, 8) == 0 &&
              getsockname(listening, (struct sockaddr *)&address, &length) == 0, "listen");
    pthread_t server;
    check(pthread_create(&server, NULL, serve, &listening) == 0, "thread");
    for (int i = 0; i < REQUESTS; i++) {
        HUDDLE_ZONE_SCOPE(z);
        check(z != NULL, "open");
        bool is_bad = i % 10 == 9;
        const char *request = is_bad ? "PUT / now\r\n\r\n" : huddle_zone_printf(z,
            "GET /item/%d HTTP/1.0\r\nHost: here\r\nUser: u%d\r\n\r\n", i, i % 7);
        const char *wanted = is_bad ? "400 bad request\r\n\r\n"
                                    : huddle_zone_printf(z, "200 ok\r\n\r\nu%d asks for /item/%d", i % 7, i);
        check(request != NULL && wanted != NULL, "memory");
        const char *got = ask(z, &address, request);
        check(got != NULL && strcmp(got, wanted) == 0, "the answer");
    }
    check(pthread_join(server, NULL) == 0, "join");
    close(listening);
    printf("%d requests answered\n", REQUESTS);
    return EXIT_SUCCESS;
}
