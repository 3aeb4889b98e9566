/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

void leat_open_standard_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        (void)close(fd);
}
