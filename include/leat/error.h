/*
 * error.h - the one way in which leat reports that something went wrong
 *
 * A status says the kind of failure, so that code can choose what to do. A struct
 * leat_error says the cause, so that a person can: it is filled where the failure is
 * discovered and lies on the object that failed, or in a parameter of the call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef LEAT_ERROR_H
#define LEAT_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Appended to, never renumbered: the values are part of the library's ABI. */
enum leat_status {
    LEAT_OK = 0,
    LEAT_ENOMEM = -1,      /* out of memory */
    LEAT_EUSAGE = -2,      /* the caller's arguments or configuration are wrong */
    LEAT_EAGAIN = -3,      /* nothing to do now; an event tells when there is */
    LEAT_ETLS = -4,        /* the TLS handshake or a TLS record failed */
    LEAT_EVERIFY = -5,     /* the peer's certificate was not accepted */
    LEAT_EIO = -6,         /* a system call failed; leat_error.sys says how */
    LEAT_ECLOSED = -7,     /* the peer ended the stream in an orderly way */
    LEAT_ETRUNCATED = -8,  /* the peer ended a TLS stream without close_notify */
    LEAT_ERESET = -9,      /* the connection was reset */
    LEAT_ETIMEOUT = -10,   /* a deadline has passed */
    LEAT_EPROTOCOL = -11,  /* the peer does not keep to the protocol */
    LEAT_ELIMIT = -12,     /* a configured limit is reached */
    LEAT_ENOTFOUND = -13,  /* there is no such name, or it has no address */
    LEAT_ECANCELLED = -14, /* whoever started it has ended it */
};

struct leat_error {
    enum leat_status status;
    int sys;        /* the errno behind it, or 0 */
    char text[240]; /* one sentence without a newline, for a person */
};

/* Returns the name of STATUS, such as "LEAT_ENOMEM". Never NULL. */
const char *leat_status_name(enum leat_status status);

#ifdef __cplusplus
}
#endif

#endif
