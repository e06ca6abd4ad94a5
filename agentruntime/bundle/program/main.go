// Command program is the module of the programs that come with every portal. The handle of the agent in its input
// chooses
// the program. `go generate ./agentruntime/bundle` builds it.
package main

func main() {} // is never called: the portal calls run
