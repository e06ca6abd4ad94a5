package onekey_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"filippo.io/edwards25519"

	"agentsite/internal/record/onekey"
)

func key(name string) (ed25519.PrivateKey, [32]byte) {
	k := ed25519.NewKeyFromSeed(fmt.Appendf(nil, "%-32s", name))
	return k, [32]byte(k.Public().(ed25519.PublicKey))
}

func signed(k ed25519.PrivateKey, n, size int) []onekey.Signed {
	list := make([]onekey.Signed, n)
	for i := range list {
		m := fmt.Appendf(nil, "%0*d", size, i)
		sig := [64]byte(ed25519.Sign(k, m))
		list[i] = onekey.Signed{Message: m, Sig: &sig}
	}
	return list
}

// agree checks that Verify says of each what crypto/ed25519 says, and returns
// how many hold.
func agree(t *testing.T, pub [32]byte, list []onekey.Signed) (hold int) {
	t.Helper()
	k := onekey.New(pub)
	for some := range slices.Chunk(list, onekey.MaxAtOnce) {
		ok := make([]bool, len(some))
		for i := range ok {
			ok[i] = i%2 == 0 // what is there before counts for nothing
		}
		k.Verify(some, ok)
		for i, s := range some {
			if want := ed25519.Verify(pub[:], s.Message, s.Sig[:]); ok[i] != want {
				t.Errorf("%x of %x by %x: %v, want %v", *s.Sig, s.Message, pub, ok[i], want)
			}
			if ok[i] {
				hold++
			}
		}
	}
	return hold
}

// order is that of the base point.
var order, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

func TestVerify_GoodAndBad(t *testing.T) {
	k, pub := key("one")
	good := signed(k, 50, 100)
	if n := agree(t, pub, good); n != len(good) {
		t.Errorf("%d of %d hold", n, len(good))
	}
	_, other := key("other")
	if n := agree(t, other, good); n != 0 {
		t.Errorf("%d hold for another key", n)
	}
	// Every bit of a signature counts, among others that are good.
	list := slices.Clone(good[:1])
	for i := range 512 {
		sig := *good[0].Sig
		sig[i/8] ^= 1 << (i % 8)
		list = append(list, onekey.Signed{Message: good[0].Message, Sig: &sig})
		if i%40 == 0 {
			list = append(list, good[1])
		}
	}
	if n := agree(t, pub, list); n != 14 {
		t.Errorf("%d hold, want the 14 that were not changed", n)
	}
	if n := agree(t, pub, []onekey.Signed{{Message: good[0].Message, Sig: &[64]byte{}}}); n != 0 {
		t.Error("nothing holds")
	}
}

// TestVerify_Scalars has S at its bounds: those that are the same number by the
// order are refused, and digits that carry come out right.
func TestVerify_Scalars(t *testing.T) {
	var list []onekey.Signed
	for _, s := range []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(31), big.NewInt(32), big.NewInt(33), big.NewInt(127), big.NewInt(128), big.NewInt(129),
		new(big.Int).Sub(order, big.NewInt(1)), order, new(big.Int).Add(order, big.NewInt(1)), new(big.Int).Lsh(big.NewInt(1), 252), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))} {
		var sig [64]byte
		s.FillBytes(sig[32:])
		slices.Reverse(sig[32:])
		var at edwards25519.Scalar
		if _, err := at.SetCanonicalBytes(sig[32:]); err == nil {
			copy(sig[:], new(edwards25519.Point).ScalarBaseMult(&at).Bytes())
		} else {
			sig[0] = 1
		}
		list = append(list, onekey.Signed{Message: []byte("any"), Sig: &sig})
	}
	// The neutral point as the key: k does not count, S·B is R.
	if n := agree(t, [32]byte{1}, list); n != 10 {
		t.Errorf("%d of %d hold, want the 10 below the order", n, len(list))
	}
}

// small are spellings of points of small order, some not canonical, and of no
// point at all.
func small(t *testing.T) (list [][32]byte) {
	for _, s := range []string{
		"0100000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000080",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0200000000000000000000000000000000000000000000000000000000000000",
	} {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, [32]byte(b))
	}
	return list
}

// TestVerify_SmallOrder has keys and R with parts of small order, where
// implementations part: those that check a sum of many signatures, or with the
// cofactor, take more than crypto/ed25519 does.
func TestVerify_SmallOrder(t *testing.T) {
	keys := small(t)
	var s edwards25519.Scalar
	wide := sha512.Sum512([]byte("scalar"))
	if _, err := s.SetUniformBytes(wide[:]); err != nil {
		t.Fatal(err)
	}
	full := new(edwards25519.Point).ScalarBaseMult(&s)
	var points []*edwards25519.Point
	for _, b := range keys {
		if p, err := new(edwards25519.Point).SetBytes(b[:]); err == nil {
			points = append(points, p)
			// A key of full order with a part of small order.
			keys = append(keys, [32]byte(new(edwards25519.Point).Add(full, p).Bytes()))
		}
	}
	hold, mixed := 0, 0
	for i, pub := range keys {
		var list []onekey.Signed
		for n, p := range points {
			m := fmt.Appendf(nil, "%d", n)
			r := new(edwards25519.Point).ScalarBaseMult(&s)
			enc := r.Add(r, p).Bytes()
			digest := sha512.Sum512(slices.Concat(enc, pub[:], m))
			var k, sum edwards25519.Scalar
			if _, err := k.SetUniformBytes(digest[:]); err != nil {
				t.Fatal(err)
			}
			for _, last := range []*edwards25519.Scalar{&s, sum.MultiplyAdd(&k, &s, &s)} { // for a key of small order, of full order
				list = append(list, onekey.Signed{Message: m, Sig: (*[64]byte)(slices.Concat(enc, last.Bytes()))})
			}
		}
		for _, r := range small(t) { // as R, spelt in any way
			list = append(list, onekey.Signed{Message: []byte("any"), Sig: (*[64]byte)(slices.Concat(r[:], make([]byte, 32)))})
		}
		n := agree(t, pub, list)
		hold += n
		if i >= len(small(t)) {
			mixed += n
		}
	}
	if hold < 20 || mixed == 0 {
		t.Errorf("%d hold, %d of them of mixed keys: too few to tell", hold, mixed)
	}
}

func FuzzVerify(f *testing.F) {
	k, pub := key("fuzz")
	f.Add(pub[:], []byte("m"), ed25519.Sign(k, []byte("m")))
	f.Add(make([]byte, 32), []byte{}, make([]byte, 64))
	f.Fuzz(func(t *testing.T, pub, message, sig []byte) {
		if len(pub) != 32 || len(sig) != 64 {
			return
		}
		_, other := key("other")
		agree(t, [32]byte(pub), []onekey.Signed{{Message: message, Sig: (*[64]byte)(sig)}, {Message: bytes.Clone(pub), Sig: (*[64]byte)(sig)}})
		agree(t, other, []onekey.Signed{{Message: message, Sig: (*[64]byte)(sig)}})
	})
}

func BenchmarkVerify(b *testing.B) {
	k, pub := key("bench")
	list := signed(k, 1024, 1300)
	var ok [onekey.MaxAtOnce]bool
	b.Run("onekey", func(b *testing.B) {
		t := onekey.New(pub)
		for i := 0; i < b.N; i += len(ok) {
			t.Verify(list[i%len(list):][:len(ok)], ok[:])
			if !ok[0] {
				b.Fatal("refused")
			}
		}
	})
	b.Run("ed25519", func(b *testing.B) {
		for i := range b.N {
			if !ed25519.Verify(pub[:], list[i%len(list)].Message, list[i%len(list)].Sig[:]) {
				b.Fatal("refused")
			}
		}
	})
	b.Run("New", func(b *testing.B) {
		for range b.N {
			onekey.New(pub)
		}
	})
}
