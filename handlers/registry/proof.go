package registry

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha512"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"time"

	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/registry"
)

// keyPath is the path at which a domain publishes its public key.
const keyPath = "/.well-known/mcp-registry-auth"

// Bounds of fetching the keys of a domain.
const (
	maxKeyFile  = 4 << 10
	maxRecords  = 100
	maxKeys     = 10
	httpKeyWait = 10 * time.Second
	dnsKeyWait  = 5 * time.Second
)

// keyRecord matches a public key as domains publish it: the algorithm and the key in base64.
var keyRecord = regexp.MustCompile(`v=MCPv1;\s*k=([^;]+);\s*p=([A-Za-z0-9+/=]+)`)

// httpKeys returns the key records in the document that the domain serves at keyPath.
func (d *Handler) httpKeys(ctx context.Context, domain string) ([]string, error) {
	scheme := "https"
	// registry.ProvesNamespace accepts local domains on a loopback portal only
	if registry.LocalDomain(domain) {
		scheme = "http"
	}
	ctx, cancel := context.WithTimeout(ctx, httpKeyWait)
	defer cancel()
	address := scheme + "://" + domain + keyPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s is not an address", address)
	}
	req.Header.Set("Accept", "text/plain")
	resp, err := d.Fetch.RoundTrip(req)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "failed to fetch public key from %s: %s", address,
			egress.Reason(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Invalid, "failed to fetch public key: %s answered with HTTP %d instead of 200",
			address, resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxKeyFile+1))
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "failed to fetch public key from %s: %s", address,
			egress.Reason(err))
	}
	if len(b) > maxKeyFile {
		return nil, fault.New(fault.Invalid, "HTTP auth key response too large: %s holds more than %d bytes", address,
			maxKeyFile)
	}
	return []string{string(b)}, nil
}

// dnsKeys returns the key records in the TXT records of the domain itself.
func (d *Handler) dnsKeys(ctx context.Context, domain string) ([]string, error) {
	if !registry.PlainDomain(domain) || registry.LocalDomain(domain) {
		return nil, fault.New(fault.Invalid, "%s has no public DNS records; use login http", domain)
	}
	ctx, cancel := context.WithTimeout(ctx, dnsKeyWait)
	defer cancel()
	// The trailing dot disables the search domains of this machine.
	records, err := d.Resolver.LookupTXT(ctx, domain+".")
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err,
			"failed to lookup DNS TXT records of %s: there are none, or its servers do not answer", domain)
	}
	return records[:min(len(records), maxRecords)], nil
}

// verifySignature returns nil if the signature of message was made with one of the keys in records,
// otherwise the reason for the failure.
func verifySignature(records []string, message, signature []byte) error {
	var tried []string
	var last error
	for _, record := range records {
		m := keyRecord.FindStringSubmatch(record[:min(len(record), maxKeyFile)])
		if m == nil {
			continue
		}
		if len(tried) == maxKeys {
			break
		}
		tried = append(tried, cutText(strings.TrimSpace(m[1]), 20)+":"+cutText(m[2], 8))
		if err := verifyKey(strings.TrimSpace(m[1]), m[2], message, signature); err != nil {
			last = err
			continue
		}
		return nil
	}
	switch {
	case len(tried) == 0:
		return fault.New(fault.Invalid, "no MCP public key found: write it as v=MCPv1; k=ed25519; p=… at https://DOMAIN%s for login http, or in a TXT record of the domain itself for login dns", keyPath)
	case len(tried) == 1:
		return fault.Wrap(fault.Invalid, last,
			"%s (tried published key %s); if this is not the key you are signing with, the published record may be stale", last, tried[0])
	}
	return fault.Wrap(fault.Invalid, last, "signature verification failed against all %d published keys (tried: %s); if you recently rotated keys, remove any stale records", len(tried), strings.Join(tried, ", "))
}

func verifyKey(algorithm, key string, message, signature []byte) error {
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return fmt.Errorf("the published key is not base64")
	}
	ok := false
	switch algorithm {
	case "ed25519":
		if len(raw) != ed25519.PublicKeySize || len(signature) != ed25519.SignatureSize {
			return fmt.Errorf("an Ed25519 key has %d bytes and its signature %d", ed25519.PublicKeySize,
				ed25519.SignatureSize)
		}
		ok = ed25519.Verify(raw, message, signature)
	case "ecdsap384":
		if len(raw) != 49 || len(signature) != 96 {
			return fmt.Errorf("an ECDSA P-384 key has 49 bytes, compressed, and its signature 96")
		}
		if ok, err = verifyP384(raw, message, signature); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unsupported public key algorithm %q; use ed25519 or ecdsap384", cutText(algorithm, 20))
	}
	if !ok {
		return fmt.Errorf("signature verification failed")
	}
	return nil
}

// verifyP384 verifies a signature that consists of r and s, 48 bytes each, over the SHA-384 hash of
// message.
func verifyP384(key, message, signature []byte) (bool, error) {
	curve := elliptic.P384()
	x, y := elliptic.UnmarshalCompressed(curve, key)
	if x == nil {
		return false, fmt.Errorf("the published key is not a point of P-384")
	}
	point := make([]byte, 97)
	point[0] = 4 // the prefix of an uncompressed point
	x.FillBytes(point[1:49])
	y.FillBytes(point[49:])
	public, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return false, err
	}
	sig, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(signature[:48]),
		new(big.Int).SetBytes(signature[48:])})
	if err != nil {
		return false, err
	}
	digest := sha512.Sum384(message)
	return ecdsa.VerifyASN1(public, digest[:], sig), nil
}

// cutText shortens an untrusted text to most runes, because error messages quote it.
func cutText(s string, most int) string {
	if r := []rune(strings.ToValidUTF8(s, "\uFFFD")); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
