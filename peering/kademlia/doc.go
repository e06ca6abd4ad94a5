// Package kademlia is the distributed hash table of the network (Maymounkov and Mazières, 2002),
// made for portals without a reputation: it decides which nodes are near a key, keeps values there,
// and keeps both correct while nodes die, do not answer or lie. See DESIGN.md for the choices and
// their reasons.
//
// It is a state machine without goroutines, clocks, sockets and locks. A Node gets the current time
// and the answers as arguments, and returns the requests to send and the time of its next step. The
// code that drives it owns the network:
//
//	for _, call := range node.Poll(now) {
//	// send call.Request to call.To; then, whenever that ends,
//	// node.Answer(call.ID, response, now) or node.Fail(call.ID, now)
//	}
//	// poll again at node.Wake(), after each Answer or Fail, and after each
//	// new lookup, Put or contact
//
// The package knows ids and bytes only. A Validator knows the meaning of a value, whether it is
// genuine and which of two is newer. The transport that sends the calls knows how to reach a
// contact.
package kademlia
