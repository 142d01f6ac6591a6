/* zone_parser.c - a parser of arithmetic expressions whose tree lies in a zone.
 *
 *     cc zone_parser.c $(pkg-config --cflags --libs huddle) && ./a.out
 *
 * No node is freed: the tree goes when its zone is reset, also one that was half built when an error was found. */
#include <ctype.h>
#include <huddle/zone.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    char op; /* of + - * /, or 0: a number */
    long number;
    struct node *left, *right;
};

struct parser {
    huddle_zone_t *zone;
    const char *next;
    const char *error; /* the first one, in the zone, or NULL */
};

static struct node *parse_sum(struct parser *p);

static struct node *fail(struct parser *p, const char *what) {
    if (p->error == NULL) p->error = huddle_zone_printf(p->zone, "%s before '%s'", what, p->next);
    if (p->error == NULL) p->error = "out of memory";
    return NULL;
}

static char peek(struct parser *p) {
    while (*p->next == ' ') p->next++;
    return *p->next;
}

static struct node *make(struct parser *p, struct node value) {
    struct node *n = huddle_new(p->zone, struct node);
    if (n == NULL) return fail(p, "out of memory");
    *n = value;
    return n;
}

static struct node *parse_number(struct parser *p) {
    if (peek(p) == '(') {
        p->next++;
        struct node *inner = parse_sum(p);
        if (inner == NULL) return NULL;
        if (peek(p) != ')') return fail(p, "expected )");
        p->next++;
        return inner;
    }
    if (!isdigit((unsigned char)peek(p))) return fail(p, "expected a number");
    char *end;
    long number = strtol(p->next, &end, 10);
    p->next = end;
    return make(p, (struct node){.number = number});
}

/* Operands of one level, joined from the left. */
static struct node *parse_joined(struct parser *p, const char *ops, struct node *(*operand)(struct parser *p)) {
    struct node *left = operand(p);
    while (left != NULL && peek(p) != '\0' && strchr(ops, peek(p)) != NULL) {
        char op = *p->next++;
        struct node *right = operand(p);
        left = right == NULL ? NULL : make(p, (struct node){.op = op, .left = left, .right = right});
    }
    return left;
}

static struct node *parse_product(struct parser *p) {
    return parse_joined(p, "*/", parse_number);
}

static struct node *parse_sum(struct parser *p) {
    return parse_joined(p, "+-", parse_product);
}

static struct node *parse(struct parser *p) {
    struct node *tree = parse_sum(p);
    return tree != NULL && peek(p) != '\0' ? fail(p, "expected the end") : tree;
}

/* Prints the tree, with all its parentheses, into the growing object of the zone. */
static bool print(huddle_zone_t *z, const struct node *n) {
    if (n->op == 0) return huddle_zone_buf_appendf(z, "%ld", n->number) == 0;
    return huddle_zone_buf_append(z, "(", 1) == 0 && print(z, n->left) &&
           huddle_zone_buf_appendf(z, " %c ", n->op) == 0 && print(z, n->right) &&
           huddle_zone_buf_append(z, ")", 1) == 0;
}

static long evaluate(const struct node *n) {
    if (n->op == 0) return n->number;
    long left = evaluate(n->left), right = evaluate(n->right);
    if (n->op == '+') return left + right;
    if (n->op == '-') return left - right;
    if (n->op == '*') return left * right;
    return right == 0 ? 0 : left / right;
}

int main(void) {
    static const struct {
        const char *text, *printed; /* or the error */
        long value;
        bool is_right;
    } cases[] = {
        {"1", "1", 1, true},
        {"1 + 2 * 3", "(1 + (2 * 3))", 7, true},
        {"(1 + 2) * 3 - 4 / 2", "(((1 + 2) * 3) - (4 / 2))", 7, true},
        {"((((10)))) - 2 - 3", "((10 - 2) - 3)", 5, true},
        {"2 * (3 + ", "expected a number before ''", 0, false},
        {"2 * (3 + 4 5", "expected ) before '5'", 0, false},
        {"1 2", "expected the end before '2'", 0, false},
    };
    huddle_zone_t *z = huddle_zone_open(NULL);
    if (z == NULL) return EXIT_FAILURE;
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct parser p = {.zone = z, .next = cases[i].text};
        struct node *tree = parse(&p);
        const char *printed = p.error;
        if (tree != NULL)
            printed = huddle_zone_buf_begin(z) == 0 && print(z, tree) ? huddle_zone_buf_finish(z, NULL) : NULL;
        bool is_right = printed != NULL && strcmp(printed, cases[i].printed) == 0 &&
                        (tree != NULL) == cases[i].is_right &&
                        (tree == NULL || evaluate(tree) == cases[i].value);
        printf("%-20s  %s%s\n", cases[i].text, printed != NULL ? printed : "out of memory", is_right ? "" : "  WRONG");
        wrong += !is_right;
        if (huddle_zone_reset(z) != 0) wrong++; /* tree, text and error message are gone */
    }
    huddle_zone_close(z);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
