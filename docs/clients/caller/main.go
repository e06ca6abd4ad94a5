// Command caller is an example for docs/connect.md: an OpenAI-compatible endpoint that answers
// requests of one portal only, with the kind of the caller. Usage: go run . PORTAL [PUBLIC-URL]. It
// uses only the standard library.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	inputs     = regexp.MustCompile(`^sig1=(\((.*?)\);(.*))$`)
	signatures = regexp.MustCompile(`^sig1=:(.*):$`)
	components = regexp.MustCompile(`"([^"]+)"(;key="sig1")?`)
	parameters = regexp.MustCompile(`(\w+)="?([^";]*)"?`)
	member     = regexp.MustCompile(`sig1=("[^"]*")`)
	must       = []string{"@method", "@authority", "@path", "@query", "agentsite-portal", "agentsite-caller"}
	seen       sync.Map // nonces that were used, with the time to forget them
)

// keyOf requests the portal's public key with an id. A real endpoint should cache it for an hour.
func keyOf(portal, id string) (ed25519.PublicKey, error) {
	var set struct{ Keys []struct{ Kid, X string } }
	resp, err := http.Get(portal + "/.well-known/http-message-signatures-directory")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&set); err != nil {
		return nil, err
	}
	for _, k := range set.Keys {
		if b, err := base64.RawURLEncoding.DecodeString(k.X); k.Kid == id && err == nil && len(b) == ed25519.PublicKeySize {
			return b, nil
		}
	}
	return nil, errors.New("unknown key")
}

// caller verifies the signature of a request (RFC 9421) and returns its Agentsite-Caller field.
// ours is the URL by which the portal calls this endpoint.
func caller(r *http.Request, body []byte, portal string, ours *url.URL) (string, error) {
	input, sig := inputs.FindStringSubmatch(r.Header.Get("Signature-Input")), signatures.FindStringSubmatch(r.Header.Get("Signature"))
	if input == nil || sig == nil {
		return "", errors.New("not signed")
	}
	need := must
	if len(body) > 0 {
		need = append(need[:len(need):len(need)], "content-digest")
	}
	for _, name := range need {
		if !strings.Contains(input[2], `"`+name+`"`) {
			return "", errors.New(name + " is not signed")
		}
	}
	param := map[string]string{}
	for _, m := range parameters.FindAllStringSubmatch(input[3], -1) {
		param[m[1]] = m[2]
	}
	created, _ := strconv.ParseInt(param["created"], 10, 64)
	if age := time.Since(time.Unix(created, 0)).Abs(); age > time.Minute || param["tag"] != "web-bot-auth" || r.Header.Get("Agentsite-Portal") != portal {
		return "", errors.New("not of this portal, or not of this minute")
	}
	value := map[string]string{"@method": r.Method, "@authority": ours.Host, "@path": r.URL.EscapedPath(), "@query": "?" + r.URL.RawQuery}
	var base strings.Builder
	for _, c := range components.FindAllStringSubmatch(input[2], -1) {
		v, derived := value[c[1]]
		if !derived {
			v = r.Header.Get(c[1])
		}
		if m := member.FindStringSubmatch(v); c[2] != "" && m != nil {
			v = m[1]
		}
		fmt.Fprintf(&base, "%s: %s\n", c[0], v)
	}
	base.WriteString(`"@signature-params": ` + input[1])
	key, err := keyOf(portal, param["keyid"])
	if err != nil {
		return "", err
	}
	raw, err := base64.StdEncoding.DecodeString(sig[1])
	if err != nil || !ed25519.Verify(key, []byte(base.String()), raw) {
		return "", errors.New("the signature does not fit")
	}
	sum := sha256.Sum256(body)
	if digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"; len(body) > 0 && r.Header.Get("Content-Digest") != digest {
		return "", errors.New("another body")
	}
	seen.Range(func(nonce, end any) bool {
		if time.Now().After(end.(time.Time)) {
			seen.Delete(nonce)
		}
		return true
	})
	if _, again := seen.LoadOrStore(param["nonce"], time.Now().Add(3*time.Minute)); again {
		return "", errors.New("sent before")
	}
	return r.Header.Get("Agentsite-Caller"), nil
}

func main() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	portal, ours := os.Args[1], &url.URL{Host: l.Addr().String()}
	if len(os.Args) > 2 {
		if ours, err = url.Parse(os.Args[2]); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("http://%s/v1\n", l.Addr())
	log.Fatal(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		var who string
		if err == nil {
			who, err = caller(r, body, portal, ours)
		}
		var answer any = map[string]any{"object": "list", "data": []any{map[string]string{"id": "who", "object": "model"}}}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case err != nil:
			w.WriteHeader(http.StatusUnauthorized)
			answer = map[string]any{"error": map[string]string{"message": err.Error()}}
		case r.Method == http.MethodPost:
			answer = map[string]any{"object": "chat.completion", "choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": who}}}}
		}
		var out bytes.Buffer
		if err := json.NewEncoder(&out).Encode(answer); err == nil {
			w.Write(out.Bytes())
		}
	})))
}
