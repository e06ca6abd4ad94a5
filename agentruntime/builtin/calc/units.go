package calc

import (
	"fmt"
	"math/big"
	"strings"
)

// dimension is a kind of quantity. Units of one dimension convert into each
// other.
type dimension string

const (
	length      dimension = "a length"
	mass        dimension = "a mass"
	duration    dimension = "a time"
	temperature dimension = "a temperature"
	area        dimension = "an area"
	volume      dimension = "a volume"
	speed       dimension = "a speed"
	data        dimension = "an amount of data"
	dataRate    dimension = "a data rate"
	// Working days have no fixed length, so they convert to nothing else.
	workdays dimension = "a number of working days"
)

// unit is a unit of unitTable, the square or cube of a length, or a quotient such as km/h.
type unit struct {
	symbol, plural string // plural is set for units that are words
	dim            dimension
	factor         *big.Rat // value of one unit in the base unit of the dimension
	offset         *big.Rat // zero of °C and °F in K; nil for other units
	over, under    *unit    // the two units of a quotient like km/h; nil for others
}

// unitTable is the only table of units: symbol, plural if it is a word, dimension, exact factor to the
// base unit (m, kg, s, K, bit), other names. Of two symbols that differ only in case, the first is also
// found in lower case.
var unitTable = []struct {
	symbol, plural string
	dim            dimension
	factor         string
	names          string
}{
	{"m", "", length, "1", "metre metres meter meters"},
	{"km", "", length, "1000", "kms kilometre kilometres kilometer kilometers"},
	{"dm", "", length, "1/10", "decimetre decimetres decimeter decimeters"},
	{"cm", "", length, "1/100", "cms centimetre centimetres centimeter centimeters"},
	{"mm", "", length, "1/1000", "millimetre millimetres millimeter millimeters"},
	{"µm", "", length, "1/1000000", "μm um micron microns micrometre micrometres micrometer micrometers"},
	{"nm", "", length, "1/1000000000", "nanometre nanometres nanometer nanometers"},
	{"in", "", length, "0.0254", "inch inches"},
	{"ft", "", length, "0.3048", "foot feet"},
	{"yd", "", length, "0.9144", "yds yard yards"},
	{"mi", "", length, "1609.344", "mile miles"},
	{"nmi", "", length, "1852", ""},
	{"ly", "", length, "9460730472580800", "lightyear lightyears"},

	{"kg", "", mass, "1", "kgs kilo kilos kilogram kilograms kilogramme kilogrammes"},
	{"g", "", mass, "1/1000", "gram grams gramme grammes"},
	{"mg", "", mass, "1/1000000", "milligram milligrams"},
	{"µg", "", mass, "1/1000000000", "μg ug mcg microgram micrograms"},
	{"t", "", mass, "1000", "tonne tonnes"},
	{"lb", "", mass, "0.45359237", "lbs pound pounds"},
	{"oz", "", mass, "0.028349523125", "ounce ounces"},
	{"st", "", mass, "6.35029318", "stone stones"},
	{"short ton", "short tons", mass, "907.18474", "ton tons"},

	{"s", "", duration, "1", "sec secs second seconds"},
	{"ms", "", duration, "1/1000", "msec millisecond milliseconds"},
	{"µs", "", duration, "1/1000000", "μs us microsecond microseconds"},
	{"ns", "", duration, "1/1000000000", "nanosecond nanoseconds"},
	{"min", "", duration, "60", "mins minute minutes"},
	{"h", "", duration, "3600", "hr hrs hour hours"},
	{"day", "days", duration, "86400", "d days"},
	{"week", "weeks", duration, "604800", "wk wks weeks"},
	{"month", "months", duration, "2629746", "months mo"},
	{"year", "years", duration, "31556952", "yr yrs years"},

	{"working day", "working days", workdays, "1", "workday"},

	{"K", "", temperature, "1", "kelvin kelvins"},
	{"°C", "", temperature, "1", "c celsius centigrade"},
	{"°F", "", temperature, "5/9", "f fahrenheit"},

	{"m²", "", area, "1", "sqm"},
	{"ha", "", area, "10000", "hectare hectares"},
	{"acre", "acres", area, "4046.8564224", "acres"},
	{"sq ft", "", area, "0.09290304", "sqft"},

	{"L", "", volume, "1/1000", "l litre litres liter liters"},
	{"mL", "", volume, "1/1000000", "ml millilitre millilitres milliliter milliliters cc"},
	{"US gal", "", volume, "0.003785411784", "gal gallon gallons"},
	{"US qt", "", volume, "0.000946352946", "qt quart quarts"},
	{"US pt", "", volume, "0.000473176473", "pt pint pints"},
	{"US cup", "US cups", volume, "0.0002365882365", "cup cups"},
	{"US fl oz", "", volume, "0.0000295735295625", "floz"},
	{"US tbsp", "", volume, "0.00001478676478125", "tbsp tablespoon tablespoons"},
	{"US tsp", "", volume, "0.00000492892159375", "tsp teaspoon teaspoons"},

	{"kn", "", speed, "463/900", "knot knots kt kts"},

	{"B", "", data, "8", "byte bytes"},
	{"kB", "", data, "8e3", "kilobyte kilobytes"},
	{"MB", "", data, "8e6", "megabyte megabytes"},
	{"GB", "", data, "8e9", "gigabyte gigabytes"},
	{"TB", "", data, "8e12", "terabyte terabytes"},
	{"KiB", "", data, "8192", "kibibyte kibibytes"},
	{"MiB", "", data, "8388608", "mebibyte mebibytes"},
	{"GiB", "", data, "8589934592", "gibibyte gibibytes"},
	{"TiB", "", data, "8796093022208", "tebibyte tebibytes"},
	{"bit", "bits", data, "1", "bits"},
	{"kbit", "", data, "1e3", "kilobit kilobits"},
	{"Mbit", "", data, "1e6", "megabit megabits"},
	{"Gbit", "", data, "1e9", "gigabit gigabits"},
	{"Tbit", "", data, "1e12", "terabit terabits"},
}

var (
	quotientNames = map[string][2]string{
		"mph":  {"mi", "h"},
		"kmh":  {"km", "h"},
		"kph":  {"km", "h"},
		"mbps": {"Mbit", "s"},
		"gbps": {"Gbit", "s"},
	}
	// caseNames are names that depend on case and are looked up before the lower-case ones: b is a bit,
	// B a byte.
	caseNames = map[string]string{"b": "bit", "Kb": "kbit", "Mb": "Mbit", "Gb": "Gbit", "Tb": "Tbit"}

	units = indexUnits()
)

// indexUnits returns the units by symbol and by each name in lower case.
func indexUnits() map[string]*unit {
	index := make(map[string]*unit)
	for _, row := range unitTable {
		u := &unit{symbol: row.symbol, plural: row.plural, dim: row.dim, factor: mustRat(row.factor)}
		switch row.symbol {
		case "°C":
			u.offset = mustRat("273.15")
		case "°F":
			u.offset = mustRat("45967/180")
		}
		index[row.symbol] = u
		for _, name := range append(strings.Fields(row.names), strings.ToLower(row.symbol)) {
			if index[name] == nil {
				index[name] = u
			}
		}
	}
	for name, symbol := range caseNames {
		index[name] = index[symbol]
	}
	for name, pair := range quotientNames {
		index[name] = divideUnits(index[pair[0]], index[pair[1]])
	}
	return index
}

func mustRat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("calc: bad factor " + s)
	}
	return r
}

// divideUnits returns the unit of a length or amount of data by time, nil for other quotients.
func divideUnits(over, under *unit) *unit {
	dim := map[dimension]dimension{length: speed, data: dataRate}[over.dim]
	if dim == "" || under.dim != duration {
		return nil
	}
	u := &unit{
		symbol: over.symbol + "/" + under.symbol,
		dim:    dim,
		factor: new(big.Rat).Quo(over.factor, under.factor),
		over:   over,
		under:  under,
	}
	if u.symbol == "mi/h" {
		u.symbol = "mph"
	}
	return u
}

// raiseUnit returns the square (n = 2) or the cube (n = 3) of a length.
func raiseUnit(u *unit, n int) *unit {
	factor := new(big.Rat).Mul(u.factor, u.factor)
	if n == 3 {
		factor.Mul(factor, u.factor)
	}
	return &unit{symbol: u.symbol + []string{"²", "³"}[n-2], dim: []dimension{area, volume}[n-2], factor: factor}
}

func (u *unit) hasOffset() bool { return u != nil && u.offset != nil }

// isMonths reports whether the length of the unit depends on the date that it is added to: months and
// years.
func (u *unit) isMonths() bool { return u == units["month"] || u == units["year"] }

// label returns the symbol or plural to write after the number n.
func (u *unit) label(n *big.Rat) string {
	if u.plural != "" && new(big.Rat).Abs(n).Cmp(big.NewRat(1, 1)) != 0 {
		return u.plural
	}
	return u.symbol
}

func (u *unit) describe() string {
	return fmt.Sprintf("%s (%s)", u.symbol, u.dim)
}

func errOffset() error {
	return refuse("72 f to c", "°C and °F have an arbitrary zero: they convert, but do not add or multiply. Use K.")
}

// convertTo expresses a number in another unit; to nil means a plain number. Units of different
// dimensions are an Invalid fault.
func convertTo(v value, to *unit) (value, error) {
	switch {
	case v.kind != number:
		return value{}, refuse(exampleUnit, "%s cannot be converted to a unit.", v.describe())
	case v.unit == to:
		return v, nil
	case v.unit == nil && v.num.Sign() == 0 && to.offset == nil:
		return value{num: v.num, unit: to}, nil
	case v.unit == nil || to == nil || v.unit.dim != to.dim:
		other := value{unit: to}
		return value{}, refuse(
			exampleUnit,
			"%s and %s cannot be converted into each other.",
			v.describe(),
			other.describe(),
		)
	}
	r := new(big.Rat).Mul(v.num, v.unit.factor)
	if v.unit.offset != nil {
		r.Add(r, v.unit.offset)
	}
	if to.offset != nil {
		r.Sub(r, to.offset)
	}
	return limit(value{num: r.Quo(r, to.factor), unit: to, approximate: v.approximate, note: v.note})
}

// multiplyUnits returns the unit of the product a·b or quotient a/b, and n, a number in the unit b,
// converted to the form that this unit needs. Units without a product are an Invalid fault.
func multiplyUnits(a, b *unit, n *big.Rat, divide bool) (*unit, *big.Rat, error) {
	scaled := func(by *unit) *big.Rat {
		return new(big.Rat).Mul(n, new(big.Rat).Quo(b.factor, by.factor))
	}
	switch {
	case b == nil:
		return a, n, nil
	case a == nil && !divide:
		return b, n, nil
	case a == nil:
	case divide && a.dim == b.dim:
		return nil, scaled(a), nil
	case divide && b.dim == duration && divideUnits(a, b) != nil:
		return divideUnits(a, b), n, nil
	case !divide && a.dim == length && b.dim == length:
		return raiseUnit(a, 2), scaled(a), nil
	case !divide && a.under != nil && a.under.dim == b.dim: // km/h × min
		return a.over, scaled(a.under), nil
	}
	x, y := value{unit: a}, value{unit: b}
	return nil, nil, refuse(
		"60 km/h * 30 min",
		"The product or quotient of %s and %s is no unit that I know.",
		x.describe(),
		y.describe(),
	)
}

// convertToUnits expresses a quantity in several units, all but the last as whole numbers: 3.75 h in
// hours and minutes is 3 h 45 min.
func convertToUnits(v value, targets []*unit) (value, error) {
	if len(targets) == 1 {
		return convertTo(v, targets[0])
	}
	negative := v.num != nil && v.num.Sign() < 0
	if negative {
		v.num = new(big.Rat).Neg(v.num)
	}
	var list []value
	for i, to := range targets {
		q, err := convertTo(v, to)
		if err != nil {
			return value{}, err
		}
		if to.hasOffset() {
			return value{}, errOffset()
		}
		if v = q; i < len(targets)-1 {
			q.num = new(big.Rat).SetInt(floor(q.num))
			v.num = new(big.Rat).Sub(v.num, q.num)
		}
		list = append(list, q)
	}
	out := joinQuantities(list, negative)
	out.note = v.note
	return out, nil
}

// joinQuantities joins quantities to a text such as "11 months 10 days", without those that are zero.
func joinQuantities(list []value, negative bool) value {
	var words []string
	for i, v := range list {
		if v.num.Sign() != 0 || i == len(list)-1 && len(words) == 0 {
			s, _ := formatValue(v)
			words = append(words, s)
		}
	}
	s := strings.Join(words, " ")
	if negative {
		s = "-" + s
	}
	return value{kind: text, text: s}
}
