/*
 * descriptors.h - what every program does with its descriptors first
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_CMD_DESCRIPTORS_H
#define LEAT_CMD_DESCRIPTORS_H

/* Opens those of the standard descriptors that are closed: else they would be given to the first
 * sockets, and what is written to standard error would go to a peer. */
void leat_open_standard_descriptors(void);

#endif
