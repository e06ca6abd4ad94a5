package main

// sysSetns is the number of setns(2), which package syscall does not know on
// every machine.
const sysSetns = 268
