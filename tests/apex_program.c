/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain program for /dev/apex_0, after gasket's published header, in orders that drivers usually avoid. It runs under
 * `reef virtual-usb --pcie` (virtual_usb_test.cpp); nothing in it knows of Reef. Expected errors are those of gasket.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                          \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "line %d: %s does not hold (%s)\n", __LINE__, #condition, strerror(errno)); \
      exit(1);                                                                                    \
    }                                                                                             \
  } while (0)
#define FAILS_WITH(call, error) CHECK((call) == -1 && errno == (error))

struct event {
  uint64_t interrupt, file;
};
struct table {
  uint64_t index, bytes, host, device;
};
struct table_flags {
  struct table base;
  uint32_t flags;
};
struct coherent {
  uint64_t index, enable, bytes, address;
};
struct gate {
  uint64_t enable, force;
};

#define RESET _IO(0xdc, 0)
#define SET_EVENT _IOW(0xdc, 1, struct event)
#define CLEAR_EVENT _IOW(0xdc, 2, unsigned long)
#define LOOPBACK _IOW(0xdc, 3, unsigned long)
#define TABLES _IOR(0xdc, 4, uint64_t)
#define TABLE_SIZE _IOWR(0xdc, 5, struct table)
#define SIMPLE_SIZE _IOWR(0xdc, 6, struct table)
#define PARTITION _IOW(0xdc, 7, struct table)
#define MAP _IOW(0xdc, 8, struct table)
#define UNMAP _IOW(0xdc, 9, struct table)
#define CLEAR_COUNTS _IO(0xdc, 10)
#define COHERENT _IOWR(0xdc, 11, struct coherent)
#define MAP_FLAGS _IOW(0xdc, 12, struct table_flags)
#define GATE_CLOCK _IOW(0x7f, 0, struct gate)
#define PERFORMANCE _IOW(0x7f, 1, uint32_t)

enum { kPage = 4096 };
static const uint64_t kExtended = 1ull << 63;

static int open_card(void) {
  const int file = open("/dev/apex_0", O_RDWR | O_CLOEXEC);
  CHECK(file >= 0);
  return file;
}

static void calls(void) {
  struct stat about;
  CHECK(stat("/dev/apex_0", &about) == 0 && S_ISCHR(about.st_mode));
  const int file = open_card();
  CHECK(fstat(file, &about) == 0 && S_ISCHR(about.st_mode));
  uint64_t tables = 0;
  CHECK(ioctl(file, TABLES, &tables) == 0 && tables == 1);
  struct table table = {0, 0, 0, 0};
  CHECK(ioctl(file, TABLE_SIZE, &table) == 0 && table.bytes == 8192);
  CHECK(ioctl(file, SIMPLE_SIZE, &table) == 0 && table.bytes == 8192);
  table.index = 1;
  FAILS_WITH(ioctl(file, TABLE_SIZE, &table), EFAULT);
  FAILS_WITH(ioctl(file, PARTITION, &table), EFAULT);
  table.index = 0;
  table.bytes = 8193;
  FAILS_WITH(ioctl(file, PARTITION, &table), EINVAL);
  table.bytes = 6144;
  CHECK(ioctl(file, PARTITION, &table) == 0);
  CHECK(ioctl(file, SIMPLE_SIZE, &table) == 0 && table.bytes == 6144);
  CHECK(ioctl(file, CLEAR_COUNTS, 0) == 0);
  FAILS_WITH(ioctl(file, LOOPBACK, 0), ENOTTY);
  FAILS_WITH(ioctl(file, _IO(0x7f, 9), 0), ENOTTY);
  FAILS_WITH(ioctl(file, MAP, (void*)16), EFAULT); /* no pointer */
  FAILS_WITH(ioctl(file, TABLES, NULL), EFAULT);

  /* Interrupts: the argument of the second call is the number itself. */
  const int event = eventfd(0, EFD_CLOEXEC);
  struct event set = {4, (uint64_t)event};
  CHECK(ioctl(file, SET_EVENT, &set) == 0);
  CHECK(ioctl(file, SET_EVENT, &set) == 0);
  CHECK(ioctl(file, CLEAR_EVENT, 4ul) == 0);
  CHECK(ioctl(file, CLEAR_EVENT, 4ul) == 0); /* nothing to clear is no error */
  FAILS_WITH(ioctl(file, CLEAR_EVENT, 13ul), EINVAL);
  set.interrupt = 13;
  FAILS_WITH(ioctl(file, SET_EVENT, &set), EINVAL);
  set.interrupt = 0;
  set.file = 987;
  FAILS_WITH(ioctl(file, SET_EVENT, &set), EBADF);
  set.file = (uint64_t)file; /* a file, but no event */
  FAILS_WITH(ioctl(file, SET_EVENT, &set), EINVAL);
  set.file = (uint64_t)event;
  CHECK(ioctl(file, SET_EVENT, &set) == 0);
  close(event); /* the card has its own */

  struct gate gate = {1, 0};
  CHECK(ioctl(file, GATE_CLOCK, &gate) == 0);
  gate.enable = 0;
  CHECK(ioctl(file, GATE_CLOCK, &gate) == 0);
  uint32_t performance = 2;
  CHECK(ioctl(file, PERFORMANCE, &performance) == 0);

  struct coherent memory = {0, 1, 65537, 0};
  FAILS_WITH(ioctl(file, COHERENT, &memory), ENOMEM);
  memory.bytes = 0;
  FAILS_WITH(ioctl(file, COHERENT, &memory), EINVAL);
  memory.bytes = 4 * kPage;
  CHECK(ioctl(file, COHERENT, &memory) == 0 && memory.address % kPage == 0);
  uint8_t* queue = mmap(NULL, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)memory.address);
  CHECK(queue != MAP_FAILED && queue[0] == 0 && queue[4 * kPage - 1] == 0);
  queue[7] = 1;
  struct coherent off = {0, 0, 4 * kPage, 12345};
  FAILS_WITH(ioctl(file, COHERENT, &off), EADDRNOTAVAIL);
  off.address = memory.address;
  CHECK(munmap(queue, 4 * kPage) == 0 && ioctl(file, COHERENT, &off) == 0);
  CHECK(close(file) == 0);
  FAILS_WITH(ioctl(file, CLEAR_COUNTS, 0), EBADF);
}

static void pages(void) {
  const int file = open_card();
  struct table table = {0, 6144, 0, 0};
  CHECK(ioctl(file, PARTITION, &table) == 0);
  uint8_t* memory = mmap(NULL, 16 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  const uint64_t host = (uint64_t)(uintptr_t)memory;
  struct table_flags map = {{0, 2 * kPage, host, kExtended}, 0};
  CHECK(ioctl(file, MAP_FLAGS, &map) == 0);
  FAILS_WITH(ioctl(file, MAP_FLAGS, &map), EBUSY);
  map.base.device = kExtended + kPage; /* overlaps the second page */
  FAILS_WITH(ioctl(file, MAP, &map.base), EBUSY);
  map.base.device = kExtended + 4 * kPage;
  map.flags = 3 << 1; /* no direction */
  FAILS_WITH(ioctl(file, MAP_FLAGS, &map), EINVAL);
  map.flags = 1 << 1;
  CHECK(ioctl(file, MAP_FLAGS, &map) == 0);
  const struct table wrong[] = {
      {0, 0, host, kExtended + 64 * kPage},         {0, 100, host, kExtended + 64 * kPage},
      {0, kPage, host + 1, kExtended + 64 * kPage}, {0, kPage, host, kExtended + 64 * kPage + 8},
      {0, kPage, host, kExtended | 1ull << 40},     {0, kPage, host, 6144ull * kPage}, /* behind the simple slots */
      {0, 2 * kPage, host, 6143ull * kPage},        {0, kPage, host, 1ull << 40}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) FAILS_WITH(ioctl(file, MAP, &wrong[i]), EINVAL);
  struct table simple = {0, kPage, host, 6143ull * kPage};
  CHECK(ioctl(file, MAP, &simple) == 0);
  table.bytes = 8192;
  FAILS_WITH(ioctl(file, PARTITION, &table), EBUSY); /* something is mapped behind the border */
  struct table gone = {0, kPage, 0, kExtended + 100 * kPage};
  gone.host = host + 15 * kPage;
  CHECK(munmap(memory + 15 * kPage, kPage) == 0);
  FAILS_WITH(ioctl(file, MAP, &gone), EFAULT); /* nobody's memory */
  simple.host = 0;
  CHECK(ioctl(file, UNMAP, &simple) == 0);
  CHECK(ioctl(file, UNMAP, &simple) == 0); /* again: gasket does not mind */
  FAILS_WITH(ioctl(file, UNMAP, &wrong[1]), EINVAL);
  CHECK(ioctl(file, RESET, 0) == 0);
  CHECK(close(file) == 0);

  /* A card that was closed has forgotten everything. */
  const int second = open_card();
  CHECK(ioctl(second, SIMPLE_SIZE, &table) == 0 && table.bytes == 8192);
  CHECK(close(second) == 0);
}

/* One process at a time, however often it opens; copies of the file and mappings keep it open. */
static void owners(void) {
  const int first = open_card(), second = open_card(), copy = dup(first);
  volatile uint64_t* registers = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, copy, 0x44000);
  CHECK(registers != MAP_FAILED);
  const pid_t child = fork();
  if (child == 0) {
    uint64_t tables = 0;
    CHECK(ioctl(first, TABLES, &tables) == 0 && tables == 1); /* who has the file may use it */
    FAILS_WITH(open("/dev/apex_0", O_RDWR), EPERM);           /* opening anew is another matter */
    _exit(0);
  }
  int state = -1;
  CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
  CHECK(close(first) == 0 && close(second) == 0);
  uint64_t tables = 0;
  CHECK(ioctl(copy, TABLES, &tables) == 0 && tables == 1);
  CHECK(close(copy) == 0);
  FILE* stream = fopen("/dev/apex_0", "r+");
  CHECK(stream != NULL && ioctl(fileno(stream), TABLES, &tables) == 0);
  CHECK(fclose(stream) == 0);
  CHECK(munmap((void*)registers, kPage) == 0);
  FILE* owner = fopen("/sys/class/apex/apex_0/device_owner", "r");
  CHECK(owner != NULL);
  int process = -1;
  for (int i = 0; i < 100 && process != 0; ++i) {
    rewind(owner);
    fflush(owner);
    CHECK(fscanf(owner, "%d", &process) == 1);
    usleep(20000);
  }
  CHECK(process == 0);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  if (strcmp(argv[1], "calls") == 0) calls();
  if (strcmp(argv[1], "pages") == 0) pages();
  if (strcmp(argv[1], "owners") == 0) owners();
  printf("done\n");
  return 0;
}
