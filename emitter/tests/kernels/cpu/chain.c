// Tests chains with several threads: each group is done once, and no link begins
// before the one before it has ended.

#include "check.h"
#include "cpu/chain.h"

#include <pthread.h>

#define MAX_LINKS 8
#define MAX_GROUPS 40
#define MAX_THREADS 4

typedef struct {
  uint32_t *counters;
  index links, groups[MAX_LINKS];
  // How often each group was done. Only its owner writes it, so that a race shows.
  int32_t times[MAX_LINKS][MAX_GROUPS];
  // For each group, the groups of the link before that were done when it began.
  int32_t before[MAX_LINKS][MAX_GROUPS];
} chain;

static void do_group(chain *c, index link, index group) {
  for (index g = 0; link > 0 && g < c->groups[link - 1]; ++g)
    c->before[link][group] += c->times[link - 1][g];
  ++c->times[link][group];
}

// Does what a workgroup's entry point does.
static void workgroup(chain *c) {
  for (index link = 0; link < c->links; ++link) {
    const index groups = c->groups[link];
    for (index group = chain_take(c->counters, link, groups); group < groups;
         group = chain_finish_and_take(c->counters, link, groups))
      do_group(c, link, group);
    if (link + 1 < c->links &&
        !chain_wait(c->counters, link, groups, c->times, sizeof c->times))
      return;
  }
}

static void *thread(void *argument) {
  for (int repeat = 0; repeat < 4; ++repeat)
    workgroup(argument);
  return NULL;
}

static void test_case(int threads) {
  static chain c;
  memset(&c, 0, sizeof c);
  c.links = random_index(1, MAX_LINKS);
  for (index link = 0; link < c.links; ++link)
    c.groups[link] = random_index(0, 2) ? random_index(1, MAX_GROUPS) : 1;
  at_case("%d threads, %lld links", threads, (long long)c.links);
  const index bytes = c.links * CHAIN_LINK_WORDS * 4;
  c.counters = allocate(bytes);
  memset(c.counters, 0, (size_t)bytes);
  pthread_t others[MAX_THREADS];
  for (int t = 0; t + 1 < threads; ++t)
    check_equal("pthread_create", t, pthread_create(&others[t], NULL, thread, &c), 0);
  thread(&c);
  for (int t = 0; t + 1 < threads; ++t)
    pthread_join(others[t], NULL);
  for (index link = 0; link < c.links; ++link) {
    for (index group = 0; group < c.groups[link]; ++group) {
      check_equal("times", group, c.times[link][group], 1);
      if (link > 0)
        check_equal("before", group, c.before[link][group],
                    (double)c.groups[link - 1]);
    }
  }
  release_all();
}

// A thread does not wait forever for a group that nobody finishes.
static void test_leaving(void) {
  at_case("a thread that is gone");
  uint32_t *counters = allocate(CHAIN_LINK_WORDS * 4);
  memset(counters, 0, CHAIN_LINK_WORDS * 4);
  check_equal("taken", 0, (double)chain_take(counters, 0, 2), 0);
  check_equal("taken", 1, (double)chain_finish_and_take(counters, 0, 2), 1);
  check_equal("waited", 0, (double)chain_wait(counters, 0, 2, counters, 64), 0);
  check_equal("none left", 2, (double)chain_finish_and_take(counters, 0, 2), 2);
  check_equal("waited", 1, (double)chain_wait(counters, 0, 2, counters, 64), 1);
  release_all();
}

int main(void) {
  begin_tests();
  for (int repeat = 0; repeat < 200; ++repeat)
    test_case(repeat % MAX_THREADS + 1);
  test_leaving();
  return end_tests();
}
