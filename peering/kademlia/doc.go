// Package kademlia is the distributed hash table of the network (Maymounkov and
// Mazières, 2002), made for portals that nobody vouches for: who is near a key,
// what is kept there, and how both stay true while nodes die, fall silent and
// lie. See DESIGN.md for what was chosen and why.
//
// It is a state machine without goroutines, clocks, sockets and locks. A Node
// is told what time it is and what came, and says what to send and when to come
// back; whoever drives it owns the network:
//
//	for _, call := range node.Poll(now) {
//		// send call.Request to call.To; then, whenever that ends,
//		// node.Answer(call.ID, response, now) or node.Fail(call.ID, now)
//	}
//	// poll again at node.Wake(), after each Answer or Fail, and when something
//	// was asked of the node
//
// It knows ids and bytes only: what a value means, whether it is genuine and
// which of two is newer is said by a Validator, and where a contact is reached
// is known to who sends the calls.
package kademlia
