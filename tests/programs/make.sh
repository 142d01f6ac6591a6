# needs: make cc sort sha256sum seq
# A parallel build of many small files, its rebuild, and a makefile that is mostly text functions.
set -eu
for i in $(seq 1 24); do
    printf 'int f%d(int n);\nint f%d(int n) { return n * %d + 1; }\n' "$i" "$i" "$i" >"f$i.c"
done
{
    for i in $(seq 1 24); do echo "int f$i(int n);"; done
    echo '#include <stdio.h>'
    echo 'int main(void) { int n = 0;'
    for i in $(seq 1 24); do echo "    n += f$i(n % 1000);"; done
    printf '%s\n' '    printf("%d\n", n); }'
} >main.c
cat >Makefile <<'RULES'
sources := $(sort $(wildcard *.c))
objects := $(sources:.c=.o)
digits := 0 1 2 3 4 5 6 7 8 9
numbers := $(foreach a,$(digits),$(foreach b,$(digits),$(foreach c,$(digits),$(a)$(b)$(c))))
program: $(objects)
	@cc -o $@ $^
%.o: %.c
	@cc -O1 -c -o $@ $<
words:
	@echo $(words $(numbers)) $(words $(filter %7,$(numbers))) $(lastword $(sort $(subst 9,x,$(numbers))))
define rule
generated-$(1): ; @echo $(1) $(words $(filter-out $(1)%,$(numbers)))
all-generated:: generated-$(1)
endef
$(foreach n,$(wordlist 1,100,$(numbers)),$(eval $(call rule,$(n))))
RULES
make -j2 --no-print-directory program
./program
touch f7.c
make -j2 -d --no-print-directory program | grep -c 'Must remake'
sha256sum -- *.o | sort | sha256sum
make -s words
make -s -j2 all-generated | sort | sha256sum
