/* A port of the loopback address that nobody listens on, and that the system gives to no connection
   by itself: below its range for those (ip_local_port_range). */
#ifndef TUTTI_TESTS_PROGRAMS_FREE_PORT_H
#define TUTTI_TESTS_PROGRAMS_FREE_PORT_H

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static int free_port(void) {
  const unsigned first = 10000, many = 22000;
  unsigned attempt;
  for (attempt = 0; attempt < many; ++attempt) {
    const unsigned port = first + ((unsigned)getpid() * 2999 + attempt * 7919) % many;
    struct sockaddr_in address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    int is_free;
    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_free = bind(fd, (struct sockaddr*)&address, sizeof(address)) == 0;
    close(fd);
    if (is_free) return (int)port;
  }
  CHECK(0);
  return 0;
}

#endif
