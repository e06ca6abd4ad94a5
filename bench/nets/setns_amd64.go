package main

// sysSetns is the number of the system call setns(2), which package syscall does not define for every
// architecture.
const sysSetns = 308
