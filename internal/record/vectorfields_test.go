package record_test

import (
	"fmt"
	"strings"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

func (f *forge) makeBadFields() {
	many := func(n int, s func(int) any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = s(i)
		}
		return list
	}
	tags := func(i int) any { return fmt.Sprintf("t%04d", i) }
	for _, c := range []struct {
		name, good string
		set        map[string]any
	}{
		{"no portal", "agent", map[string]any{"portal": nil}},
		{"a portal that is no id", "agent", map[string]any{"portal": "one.example"}},
		{"a portal's id with its unused bits set", "agent", map[string]any{"portal": unusedBits(string(f.one.ID))}},
		{"seq 0", "agent", map[string]any{"seq": 0}},
		{"a negative seq", "agent", map[string]any{"seq": -1}},
		{"a seq that is text", "agent", map[string]any{"seq": "5"}},
		{"an epoch after iss", "agent", map[string]any{"epoch": f.one.Now + 1}},
		{"no epoch", "agent", map[string]any{"epoch": nil}},
		{"exp before iss", "agent", map[string]any{"exp": f.one.Now - 1}},
		{"exp at iss", "agent", map[string]any{"exp": f.one.Now}},
		{"a card with another root key", card1, map[string]any{"root_pub": record.PublicOf(f.two.Root)}},
		{"a card with a root key of small order", card1, map[string]any{"root_pub": record.Public{1}, "portal": record.PortalOf(record.Public{1})}},
		{"a card with an operational key of small order", card1, map[string]any{"keys": []any{f.key(record.Public{})}}},
		{"a card with its root key as an operational one", card1, map[string]any{"keys": []any{f.key(record.PublicOf(f.one.Root))}}},
		{"a card with five keys", card1, map[string]any{"keys": many(5, func(i int) any { return f.key(record.PublicOf(recordtest.Key(fmt.Sprint(i)))) })}},
		{"a card with a key twice", card1, map[string]any{"keys": []any{f.one.Key(), f.one.Key()}}},
		{"a card with a key under another id", card1, map[string]any{"keys": []any{record.Key{ID: "aaaaaaaaaaaaaaaa", Pub: f.one.Key().Pub, From: 1, Until: 2}}}},
		{"a card with a key for 91 days", card1, map[string]any{"keys": []any{record.Key{ID: f.one.Key().ID, Pub: f.one.Key().Pub, From: f.one.Now, Until: f.one.Now + 91*day}}}},
		{"a card at an origin without TLS", card1, map[string]any{"origin": "http://one.example"}},
		{"a card at an origin with a path", card1, map[string]any{"origin": "https://one.example/"}},
		{"a card at an origin in upper case", card1, map[string]any{"origin": "https://One.example"}},
		{"a card at an origin with the port of https", card1, map[string]any{"origin": "https://one.example:443"}},
		{"a card at an origin with a user", card1, map[string]any{"origin": "https://one@two.example"}},
		{"a card at an address spelt as a number", card1, map[string]any{"origin": "https://2130706433"}},
		{"a card without a name", card1, map[string]any{"name": " "}},
		{"a card with a name that turns the text around", card1, map[string]any{"name": "a\u202eb"}},
		{"a card with roles out of order", card1, map[string]any{"roles": []any{"sync", "dht"}}},
		{"a card with a role that is none", card1, map[string]any{"roles": []any{"king"}}},
		{"a card of no tier", card1, map[string]any{"tier": "best"}},
		{"a card with a negative limit", card1, map[string]any{"limits": map[string]any{"a": -1}}},
		{"an agent without an id", "agent", map[string]any{"id": nil}},
		{"an agent with another portal in its id", "agent", map[string]any{"id": string(f.two.ID) + "/x"}},
		{"an agent with the id of a key it does not show", "agent", map[string]any{"id": record.PortableID(record.PublicOf(recordtest.Key("agent")))}},
		{"an agent with the id of another key", "portable agent", map[string]any{"id": record.PortableID(record.PublicOf(f.one.Op))}},
		{"an agent without a name", "agent", map[string]any{"name": nil}},
		{"an agent with spaces in its name", "agent", map[string]any{"name": "a b"}},
		{"an agent with a title of two lines", "agent", map[string]any{"title": "a\nb"}},
		{"an agent with 1025 bytes of description", "agent", map[string]any{"description": strings.Repeat("x", 1025)}},
		{"an agent with 33 capabilities", "agent", map[string]any{"caps": many(33, tags)}},
		{"an agent with capabilities out of order", "agent", map[string]any{"caps": []any{"b", "a"}}},
		{"an agent with a capability twice", "agent", map[string]any{"caps": []any{"a", "a"}}},
		{"an agent with a capability in upper case", "agent", map[string]any{"caps": []any{"A"}}},
		{"an agent with an empty word in a capability", "agent", map[string]any{"caps": []any{"a//b"}}},
		{"an agent with 33 skills", "agent", map[string]any{"skills": many(33, func(i int) any { return map[string]any{"id": fmt.Sprint(i), "name": "s"} })}},
		{"an agent with a skill without a name", "agent", map[string]any{"skills": []any{map[string]any{"id": "a", "name": ""}}}},
		{"an agent at a script", "agent", map[string]any{"endpoints": []any{map[string]any{"url": "javascript:alert(1)", "protocol": "a2a"}}}},
		{"an agent at a file", "agent", map[string]any{"card_url": "file:///etc/passwd"}},
		{"an agent with half a hash", "agent", map[string]any{"card_sha256": "AAAA"}},
		{"an agent with a list for a name", "agent", map[string]any{"name": []any{"x"}}},
		{"an agent of a kind with a space", "agent", map[string]any{"kind": "a b"}},
		{"an agent with 21 media types", "agent", map[string]any{"inputs": many(21, func(i int) any { return fmt.Sprintf("text/t%02d", i) })}},
		{"an agent with media types out of order", "agent", map[string]any{"outputs": []any{"text/b", "text/a"}}},
		{"an agent with half a media type", "agent", map[string]any{"inputs": []any{"text/"}}},
		{"an agent with a media type in upper case", "agent", map[string]any{"inputs": []any{"Text/plain"}}},
		{"an agent with a media type that ends an attribute", "agent", map[string]any{"outputs": []any{"text/a\"b"}}},
		{"an agent that was changed after iss", "agent", map[string]any{"updated": f.one.Now + 1}},
		{"an agent that was registered before 1970", "agent", map[string]any{"created": -1}},
		{"an agent that is withdrawn", "agent", map[string]any{"status": "withdrawn"}},
		{"an agent with a note of no status", "agent", map[string]any{"status_note": "x"}},
		{"an agent with 1201 bytes of note", "agent", map[string]any{"status": "deprecated", "status_note": strings.Repeat("x", 1201)}},
		{"an agent of an owner elsewhere", "agent", map[string]any{"owner": "ada@bank.example"}},
		{"an agent published under an address", "agent", map[string]any{"publisher": "https://bank.example"}},
		{"an agent published under half a domain", "agent", map[string]any{"publisher": "bank..example"}},
		{"an agent with a proof of nothing", "agent", map[string]any{"proof": map[string]any{}}},
		{"an agent with a proof at an address", "agent", map[string]any{"proof": map[string]any{"way": "token", "origin": "https://a.example/x"}}},
		{"an agent with a proof of tomorrow", "agent", map[string]any{"proof": map[string]any{"way": "token", "at": f.one.Now + day}}},
		{"an agent with a proof that is text", "agent", map[string]any{"proof": "yes"}},
		{"an agent with six examples of a skill", "agent", map[string]any{"skills": []any{map[string]any{"id": "a", "name": "b", "examples": many(6, tags)}}}},
		{"an agent with an example of two lines", "agent", map[string]any{"skills": []any{map[string]any{"id": "a", "name": "b", "examples": []any{"c\nd"}}}}},
		{"a tombstone with an owner", "tombstone", map[string]any{"owner": "ada"}},
		{"a tombstone with a name", "tombstone", map[string]any{"name": "yy"}},
		{"a head of nothing with a root", "head", map[string]any{"count": 0}},
		{"a head of something with the root of nothing", "head of nothing", map[string]any{"count": 1}},
		{"a head of too much", "head", map[string]any{"count": record.MaxAgents + 1}},
		{"a head with a log that begins later", "head", map[string]any{"log_start": 1 << 40}},
		{"a summary with counts out of order", "summary", map[string]any{"caps": []any{map[string]any{"cap": "b", "count": 1}, map[string]any{"cap": "a", "count": 1}}}},
		{"a summary with a count of 0", "summary", map[string]any{"caps": []any{map[string]any{"cap": "b", "count": 0}}}},
		{"a summary with a filter that is too large", "summary", map[string]any{"terms": strings.Repeat("A", 32_004)}},
		{"a provider of nothing", "provider", map[string]any{"count": 0}},
		{"a provider of another kind", "provider", map[string]any{"kind": "money"}},
		{"an attestation of oneself", "attestation", map[string]any{"subject": f.one.ID}},
		{"an attestation without a verdict", "attestation", map[string]any{"verdict": nil}},
		{"words about nobody's agents", "words about own agents", map[string]any{"subject": "p1"}},
		{"words about no agent", "words about own agents", map[string]any{"words": ""}},
		{"no words", "words about own agents", map[string]any{"words": nil}},
		{"words cut short", "words about own agents", map[string]any{"words": "AAAAAAAAAAAAAAA"}},
		{"words about 501 agents", "words about own agents", map[string]any{"words": wordText(501, func(i int, b []byte) { b[0], b[1] = byte(i>>8), byte(i) })}},
		{"words with a state that is none", "words about own agents", map[string]any{"words": wordText(1, func(_ int, b []byte) { b[11] = 0 })}},
		{"words with a state of a later version", "words about own agents", map[string]any{"words": wordText(1, func(_ int, b []byte) { b[11] = 5 })}},
		{"words about more than two days ago", "words about own agents", map[string]any{"words": wordText(1, func(_ int, b []byte) { b[9], b[10] = 2881>>8, 2881&255 })}},
		{"words out of order", "words about own agents", map[string]any{"words": wordText(2, func(i int, b []byte) { b[0] = byte(9 - i) })}},
		{"words about an agent twice", "words about own agents", map[string]any{"words": wordText(2, func(int, []byte) {})}},
		{"words about an agent of another shard", "words about own agents", map[string]any{"shard": "1", "words": wordText(1, func(_ int, b []byte) { b[0] = 0x20 })}},
		{"words in a shard of four digits", "words about own agents", map[string]any{"shard": "0000", "words": wordText(1, func(int, []byte) {})}},
		{"words in a shard in upper case", "words about own agents", map[string]any{"shard": "A", "words": wordText(1, func(_ int, b []byte) { b[0] = 0xa0 })}},
		{"a fork proof of oneself", "fork proof", map[string]any{"subject": f.one.ID}},
	} {
		f.bad(record.BadField, c.name, f.with(c.good, c.set), card1, card2)
	}
}

func (f *forge) key(pub record.Public) record.Key {
	return record.Key{ID: record.KeyIDOf(pub), Pub: pub, From: f.one.Now, Until: f.one.Now + day}
}

// unusedBits spells an id in another way that careless decoders take for it.
func unusedBits(id string) string {
	const abc = "abcdefghijklmnopqrstuvwxyz234567"
	last := strings.IndexByte(abc, id[len(id)-1])
	return id[:len(id)-1] + abc[last|1:][:1]
}

// wordText is so many words of a live record, alive and about agents of the
// lowest key, as set changes them.
func wordText(n int, set func(i int, word []byte)) string {
	b := make([]byte, 12*n)
	for i := range n {
		b[12*i+11] = 1
		set(i, b[12*i:][:12])
	}
	return b64.EncodeToString(b)
}
