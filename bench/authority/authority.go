// Package authority is a certificate authority for the servers of a benchmark. Only the benchmark's own
// clients trust it.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// Authority signs certificates that are valid for a day. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns an authority with a new key.
func New() (*Authority, error) {
	now := time.Now()
	tmpl := &x509.Certificate{Subject: pkix.Name{CommonName: "agentsite bench"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a := &Authority{cert: tmpl}
	der, key, err := a.sign(tmpl)
	if err != nil {
		return nil, err
	}
	a.key = key
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// Pool returns a pool that trusts this authority only.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// PEM returns the authority's own certificate, for a program that reads trusted certificates from a
// file.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Certificate returns a certificate for the host name with a new key.
func (a *Authority) Certificate(host string) (tls.Certificate, error) {
	der, key, err := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// sign creates a key and a certificate for it. The authority signs the certificate; before the
// authority has one, the new key signs its own.
func (a *Authority) sign(tmpl *x509.Certificate) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if tmpl.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	by := a.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), by)
	return der, key, err
}
