/* A port of the loopback address that nobody listens on. */
#ifndef TUTTI_TESTS_PROGRAMS_FREE_PORT_H
#define TUTTI_TESTS_PROGRAMS_FREE_PORT_H

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

static int free_port(void) {
  struct sockaddr_in address;
  socklen_t length = sizeof(address);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof(address));
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(fd, (struct sockaddr*)&address, sizeof(address)) == 0);
  CHECK(getsockname(fd, (struct sockaddr*)&address, &length) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

#endif
