package usage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"
)

// PricesFile is the name of the file in the data folder with the prices of models, which the operator writes:
//
//	{"currency": "USD", "models": {"small-1": {"input": 0.15, "output": 0.6}}}
//
// Prices are for a million tokens. A model without a price costs nothing.
const PricesFile = "prices.json"

const (
	// pricesFor is how long prices are used before the file is looked at again.
	pricesFor = 10 * time.Second
	// maxPrice bounds the price of a million tokens, and maxTokens the tokens of a call, so that a cost fits.
	maxPrice  = 1e5
	maxTokens = 1e7
	// Unit is the precision of prices and sums: millionths of the currency.
	Unit = 1_000_000
	// MaxPrices bounds the file in bytes.
	MaxPrices = 1 << 20
)

// Prices are the prices of models in a file. They are safe for concurrent use.
type Prices struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex // guards the fields below
	checked time.Time
	changed time.Time // modification of the file that was read last
	list    priceList
}

type priceList struct {
	Currency string           `json:"currency"`
	Models   map[string]Price `json:"models"`
}

// Price is the price of a million tokens.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

// Valid reports whether both are between 0 and 100,000.
func (p Price) Valid() bool {
	return p.Input >= 0 && p.Input <= maxPrice && p.Output >= 0 && p.Output <= maxPrice
}

// NewPrices returns the prices in a file, which need not exist.
func NewPrices(path string, now func() time.Time, log *slog.Logger) *Prices {
	return &Prices{path: path, now: now, log: log}
}

// Cost returns the price of tokens in millionths of the currency, 0 for a model without a price. own is the model's own
// price; if it is zero, that in the file counts.
func (p *Prices) Cost(model string, own Price, input, output int64) int64 {
	price, _, _ := p.Find(model, own)
	return price.Cost(input, output)
}

// Find returns the price of a model and its currency: own or, if that is zero, the one in the file. It is not known if
// the file has none; a model that costs nothing stands there with a price of 0.
func (p *Prices) Find(model string, own Price) (price Price, currency string, known bool) {
	list := p.current()
	currency = cmp.Or(list.Currency, defaultCurrency)
	if own != (Price{}) {
		return own, currency, true
	}
	price, known = list.Models[model]
	return price, currency, known
}

// Cost returns the price of tokens in millionths of the currency.
func (p Price) Cost(input, output int64) int64 {
	// A millionth of the currency for a token is the currency for a million of them.
	sum := min(max(input, 0), maxTokens)*toUnits(p.Input) + min(max(output, 0), maxTokens)*toUnits(p.Output)
	return (sum + Unit/2) / Unit
}

// toUnits returns a price in units, so that sums do not depend on the rounding of fractions.
func toUnits(price float64) int64 { return int64(math.Round(price * Unit)) }

// Currency returns the name of the currency, "" for none.
func (p *Prices) Currency() string { return p.current().Currency }

// current returns the prices, and reads the file again if it was changed. A file that cannot be used is logged, and the
// prices from before are kept.
func (p *Prices) current() priceList {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if !p.checked.IsZero() && now.Sub(p.checked) < pricesFor {
		return p.list
	}
	p.checked = now
	st, err := os.Stat(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.list, p.changed = priceList{}, time.Time{}
		return p.list
	case err == nil && st.ModTime().Equal(p.changed):
		return p.list
	}
	var list priceList
	if err == nil {
		p.changed = st.ModTime()
		list, err = readPrices(p.path, st.Size())
	}
	if err != nil {
		p.log.Error("the prices of models cannot be used; correct the file", "file", p.path, "error", err)
		return p.list
	}
	p.list = list
	return list
}

func readPrices(path string, size int64) (list priceList, err error) {
	if size > MaxPrices {
		return list, fmt.Errorf("it is larger than %d bytes", MaxPrices)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return list, err
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return list, err
	}
	for name, m := range list.Models {
		if !m.Valid() {
			return list, fmt.Errorf("the price of %q is not between 0 and %.0f", name, maxPrice)
		}
	}
	return list, nil
}
