/* Elastic groups through the C ABI: one of three ranks ends, the others re-form and go on; then a
 * newcomer, which knows no more than its environment, is let in. Everyone brings one bit, so that a
 * sum says who took part.
 *   c_elastic FOLDER     for the file with the places of the members
 */
#define _POSIX_C_SOURCE 200809L
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int bit; /* who this is */
#define SELF bit
#include "check.h"
#include "free_port.h"
#include "tutti_comm.h"

enum { SIZE = 3, ENDS = 1, NEWCOMER = 3 };
static char group_file[512];

static int64_t who_is_here(tutti_comm_group group) {
  int64_t sum = (int64_t)1 << bit;
  OK(tutti_comm_all_reduce(group, &sum, 1, TUTTI_COMM_INT64, TUTTI_COMM_SUM, 30));
  return sum;
}

static void tell(tutti_comm_group group) {
  tutti_comm_placement place;
  const int64_t here = who_is_here(group);
  OK(tutti_comm_group_placement(group, &place, sizeof(place)));
  OK(tutti_comm_barrier(group, 30));
  printf("bit %d is rank %d of %d with %d\n", bit, place.rank, place.size, (int)here);
}

/* On a session: no newcomer waits. Ends with the group as it was. */
static tutti_comm_group alone_with_session(tutti_comm_group group) {
  tutti_comm_session session;
  int32_t newcomers = -1;
  OK(tutti_comm_session_start(group, NULL, &session));
  OK(tutti_comm_session_waiting(session, &newcomers));
  CHECK(newcomers == 0);
  OK(tutti_comm_session_end(session, &group));
  return group;
}

static void live(int port) {
  tutti_comm_group_options options;
  tutti_comm_group group, next;
  int64_t number;
  int32_t newcomers = 0;
  tutti_comm_group_options_init(&options, sizeof(options));
  options.rank = bit;
  options.size = SIZE;
  options.master_port = port;
  options.token = "a secret";
  options.elastic = 1;
  options.group_file = group_file;
  OK(tutti_comm_group_join(&options, &group));
  CHECK(who_is_here(group) == 7);
  if (bit == ENDS) _exit(0);
  do {
    number = 1;
  } while (tutti_comm_all_reduce(group, &number, 1, TUTTI_COMM_INT64, TUTTI_COMM_SUM, 30) == 0);
  CHECK(tutti_comm_last_lost_rank() == ENDS);
  OK(tutti_comm_group_reform(group, 2, 0, 30, 0, &next));
  CHECK(tutti_comm_barrier(group, 1) == TUTTI_COMM_INVALID_ARGUMENT); /* that one is closed */
  group = next;
  tell(group);
  do { /* all agree on what rank 0 knows */
    OK(tutti_comm_group_waiting(group, &newcomers));
    OK(tutti_comm_broadcast(group, &newcomers, sizeof(newcomers), 0, 30));
  } while (newcomers == 0);
  OK(tutti_comm_group_reform(group, 3, 3, 30, 30, &next));
  tell(next);
  OK(tutti_comm_group_leave(alone_with_session(next)));
  exit(0);
}

/* The places of the survivors, when they have re-formed: one a line. */
static void members(char* text, size_t room) {
  size_t length = 0, lines = 0, i;
  while (lines != SIZE - 1) {
    FILE* const file = fopen(group_file, "r");
    sched_yield();
    if (file == NULL) continue;
    length = fread(text, 1, room - 1, file);
    fclose(file);
    text[length] = 0;
    for (lines = i = 0; i < length; ++i) lines += text[i] == '\n';
  }
  for (i = 0; i < length; ++i) {
    if (text[i] == '\n') text[i] = ',';
  }
}

static void come(void) {
  tutti_comm_group_options options;
  tutti_comm_group group;
  char places[512], nobody[16];
  members(places, sizeof(places));
  sprintf(nobody, "%d", free_port());
  setenv("TUTTI_ELASTIC", "1", 1);
  setenv("TUTTI_JOB_TOKEN", "a secret", 1);
  setenv("TUTTI_GROUP_MEMBERS", places, 1); /* and nothing else leads there */
  setenv("MASTER_PORT", nobody, 1);
  tutti_comm_group_options_init(&options, sizeof(options));
  OK(tutti_comm_group_options_from_environment(&options));
  CHECK(options.elastic == 1 && strcmp(options.token, "a secret") == 0);
  CHECK(strncmp(options.members, places, strlen(options.members)) == 0);
  OK(tutti_comm_group_join_running(&options, 30, &group));
  tell(group);
  OK(tutti_comm_group_leave(alone_with_session(group)));
  exit(0);
}

int main(int argc, char** argv) {
  pid_t pids[SIZE + 1];
  int failed = 0, status, i;
  const int port = free_port();
  if (argc != 2) return 2;
  snprintf(group_file, sizeof(group_file), "%s/members", argv[1]);
  for (bit = 0; bit <= NEWCOMER; ++bit) {
    pids[bit] = fork();
    if (pids[bit] != 0) continue;
    alarm(60);
    if (bit == NEWCOMER) come();
    live(port);
  }
  for (i = 0; i <= NEWCOMER; ++i) {
    waitpid(pids[i], &status, 0);
    if (status != 0) failed = 1;
  }
  return failed;
}
