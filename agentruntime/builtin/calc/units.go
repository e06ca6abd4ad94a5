package calc

import (
	"math/big"
	"strings"
)

// dimension is the vector of exponents over the base dimensions. Two units
// convert into each other exactly if their vectors are equal.
type dimension [11]int16

const (
	baseLength = iota
	baseMass
	baseTime
	baseTemperature
	baseData
	baseAngle
	baseWorkday
	baseDollar
	baseEuro
	basePound
	baseYen
)

func base(i int) (d dimension) { d[i] = 1; return d }

func (d dimension) plus(e dimension, times int16) dimension {
	for i := range d {
		d[i] += e[i] * times
	}
	return d
}

var (
	dimLength      = base(baseLength)
	dimMass        = base(baseMass)
	dimTime        = base(baseTime)
	dimTemperature = base(baseTemperature)
	dimData        = base(baseData)
	dimAngle       = base(baseAngle)
	// Working days are no fixed time, so they convert to nothing else.
	dimWorkday  = base(baseWorkday)
	dimArea     = dimension{}.plus(dimLength, 2)
	dimVolume   = dimension{}.plus(dimLength, 3)
	dimSpeed    = dimLength.plus(dimTime, -1)
	dimForce    = dimMass.plus(dimLength, 1).plus(dimTime, -2)
	dimEnergy   = dimForce.plus(dimLength, 1)
	dimPower    = dimEnergy.plus(dimTime, -1)
	dimPressure = dimForce.plus(dimLength, -2)
)

// dimensionNames is what errors call a dimension.
var dimensionNames = map[dimension]string{
	{}: "plain number", dimLength: "length", dimMass: "mass", dimTime: "time", dimTemperature: "temperature",
	dimData: "amount of data", dimAngle: "angle", dimWorkday: "number of working days", dimArea: "area", dimVolume: "volume",
	dimSpeed: "speed", dimForce: "force", dimEnergy: "energy", dimPower: "power", dimPressure: "pressure",
	base(baseDollar): "sum in $", base(baseEuro): "sum in €", base(basePound): "sum in £", base(baseYen): "sum in ¥",
	dimData.plus(dimTime, -1): "data rate",
}

// unitDef is one named unit: base value = number*factor + offset.
type unitDef struct {
	symbol string
	plural string // differs from symbol only for units shown as words
	dim    dimension
	factor *big.Rat
	offset *big.Rat // nil but for °C and °F
	digits int      // significant digits if the factor is irrational, else 0
}

type part struct {
	def *unitDef
	pow int
}

// unit is a product of powers of named units; empty means a plain number.
type unit []part

func (u unit) dim() (d dimension) {
	for _, p := range u {
		d = d.plus(p.def.dim, int16(p.pow))
	}
	return d
}

func (u unit) factor() *big.Rat {
	f := big.NewRat(1, 1)
	for _, p := range u {
		for range abs(p.pow) {
			if p.pow > 0 {
				f.Mul(f, p.def.factor)
			} else {
				f.Quo(f, p.def.factor)
			}
		}
	}
	return f
}

func (u unit) digits() int {
	d := 0
	for _, p := range u {
		d = fewerDigits(d, p.def.digits)
	}
	return d
}

// offset returns the zero shift of a lone °C or °F, else nil.
func (u unit) offset() *big.Rat {
	if len(u) == 1 && u[0].pow == 1 {
		return u[0].def.offset
	}
	return nil
}

func (u unit) same(v unit) bool {
	if len(u) != len(v) {
		return false
	}
	for i := range u {
		if u[i] != v[i] {
			return false
		}
	}
	return true
}

// label writes the unit after number n, which decides singular or plural.
func (u unit) label(n *big.Rat) string {
	if len(u) == 1 && u[0].pow == 1 && u[0].def.plural != "" {
		if n != nil && n.IsInt() && new(big.Int).Abs(n.Num()).Cmp(big.NewInt(1)) == 0 {
			return u[0].def.symbol
		}
		return u[0].def.plural
	}
	var up, down []string
	for _, p := range u {
		s := p.def.symbol + superscript(abs(p.pow))
		if p.pow > 0 {
			up = append(up, s)
		} else {
			down = append(down, s)
		}
	}
	s := strings.Join(up, "·")
	if s == "" {
		s = "1"
	}
	for _, d := range down {
		s += "/" + d
	}
	if s == "mi/h" {
		return "mph"
	}
	return s
}

func superscript(n int) string {
	const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹"
	if n == 1 {
		return ""
	}
	if n > 9 {
		return "^" + big.NewInt(int64(n)).String()
	}
	return string([]rune(digits)[n])
}

// name is what errors call the unit: its label and what it measures.
func (u unit) name() string {
	if len(u) == 0 {
		return "a plain number"
	}
	d, ok := dimensionNames[u.dim()]
	if !ok {
		return "the unit " + u.label(nil)
	}
	article := "a "
	if strings.ContainsRune("aeiou", rune(d[0])) {
		article = "an "
	}
	return u.label(nil) + " (" + article + d + ")"
}

// merge multiplies u by v^sign. Units of one dimension are brought to the
// first of them, so km/h times min gives km; the factor that takes is
// returned.
func (u unit) merge(v unit, sign int) (unit, *big.Rat) {
	out := append(unit(nil), u...)
	factor := big.NewRat(1, 1)
next:
	for _, p := range v {
		for i := range out {
			if out[i].def.dim != p.def.dim {
				continue
			}
			ratio := new(big.Rat).Quo(p.def.factor, out[i].def.factor)
			for range abs(p.pow) {
				if p.pow*sign > 0 {
					factor.Mul(factor, ratio)
				} else {
					factor.Quo(factor, ratio)
				}
			}
			out[i].pow += p.pow * sign
			continue next
		}
		out = append(out, part{p.def, p.pow * sign})
	}
	kept := out[:0]
	for _, p := range out {
		if p.pow != 0 {
			kept = append(kept, p)
		}
	}
	return kept, factor
}

// units is the whole table: symbol, plural if it is a word, dimension, exact
// factor to the base unit (m, kg, s, K, bit, degree), other names. When two
// symbols differ only in case, the one listed first answers to lower case.
var units = []struct {
	symbol, plural string
	dim            dimension
	factor         string
	names          string
}{
	{"m", "", dimLength, "1", "metre metres meter meters"},
	{"km", "", dimLength, "1000", "kms kilometre kilometres kilometer kilometers"},
	{"dm", "", dimLength, "1/10", "decimetre decimetres decimeter decimeters"},
	{"cm", "", dimLength, "1/100", "cms centimetre centimetres centimeter centimeters"},
	{"mm", "", dimLength, "1/1000", "millimetre millimetres millimeter millimeters"},
	{"µm", "", dimLength, "1/1000000", "μm um micron microns micrometre micrometres micrometer micrometers"},
	{"nm", "", dimLength, "1/1000000000", "nanometre nanometres nanometer nanometers"},
	{"in", "", dimLength, "0.0254", "inch inches"},
	{"ft", "", dimLength, "0.3048", "foot feet"},
	{"yd", "", dimLength, "0.9144", "yds yard yards"},
	{"mi", "", dimLength, "1609.344", "mile miles"},
	{"nmi", "", dimLength, "1852", ""},
	{"ly", "", dimLength, "9460730472580800", "lightyear lightyears"},

	{"kg", "", dimMass, "1", "kgs kilo kilos kilogram kilograms kilogramme kilogrammes"},
	{"g", "", dimMass, "1/1000", "gram grams gramme grammes"},
	{"mg", "", dimMass, "1/1000000", "milligram milligrams"},
	{"µg", "", dimMass, "1/1000000000", "μg ug mcg microgram micrograms"},
	{"t", "", dimMass, "1000", "tonne tonnes"},
	{"lb", "", dimMass, "0.45359237", "lbs pound pounds"},
	{"oz", "", dimMass, "0.028349523125", "ounce ounces"},
	{"st", "", dimMass, "6.35029318", "stone stones"},
	{"short ton", "short tons", dimMass, "907.18474", "ton tons"},

	{"s", "", dimTime, "1", "sec secs second seconds"},
	{"ms", "", dimTime, "1/1000", "msec millisecond milliseconds"},
	{"µs", "", dimTime, "1/1000000", "μs us microsecond microseconds"},
	{"ns", "", dimTime, "1/1000000000", "nanosecond nanoseconds"},
	{"min", "", dimTime, "60", "mins minute minutes"},
	{"h", "", dimTime, "3600", "hr hrs hour hours"},
	{"day", "days", dimTime, "86400", "d days"},
	{"week", "weeks", dimTime, "604800", "wk wks weeks"},
	{"fortnight", "fortnights", dimTime, "1209600", "fortnights"},
	// The Gregorian mean, exact by definition of the calendar: 146097 days in
	// 400 years. Added to a date, months and years follow the calendar instead.
	{"month", "months", dimTime, "2629746", "months mo"},
	{"year", "years", dimTime, "31556952", "yr yrs years"},
	{"decade", "decades", dimTime, "315569520", "decades"},
	{"century", "centuries", dimTime, "3155695200", "centuries"},
	{"working day", "working days", dimWorkday, "1", "workday"},

	{"K", "", dimTemperature, "1", "kelvin kelvins"},
	{"°C", "", dimTemperature, "1", "c celsius centigrade"},
	{"°F", "", dimTemperature, "5/9", "f fahrenheit"},

	{"m²", "", dimArea, "1", "sqm"},
	{"ha", "", dimArea, "10000", "hectare hectares"},
	{"acre", "acres", dimArea, "4046.8564224", "acres"},
	{"sq ft", "", dimArea, "0.09290304", "sqft"},

	{"L", "", dimVolume, "1/1000", "l litre litres liter liters"},
	{"mL", "", dimVolume, "1/1000000", "ml millilitre millilitres milliliter milliliters cc"},
	{"cL", "", dimVolume, "1/100000", "cl centilitre centilitres centiliter centiliters"},
	{"dL", "", dimVolume, "1/10000", "dl decilitre decilitres deciliter deciliters"},
	{"hL", "", dimVolume, "1/10", "hl hectolitre hectolitres hectoliter hectoliters"},
	{"US gal", "", dimVolume, "0.003785411784", "gal gallon gallons"},
	{"US qt", "", dimVolume, "0.000946352946", "qt quart quarts"},
	{"US pt", "", dimVolume, "0.000473176473", "pt pint pints"},
	{"US cup", "US cups", dimVolume, "0.0002365882365", "cup cups"},
	{"US fl oz", "", dimVolume, "0.0000295735295625", "floz"},
	{"US tbsp", "", dimVolume, "0.00001478676478125", "tbsp tablespoon tablespoons"},
	{"US tsp", "", dimVolume, "0.00000492892159375", "tsp teaspoon teaspoons"},
	{"imp gal", "", dimVolume, "0.00454609", "impgal"},
	{"imp pt", "", dimVolume, "0.00056826125", "imppt"},

	{"kn", "", dimSpeed, "463/900", "knot knots kt kts"},

	{"B", "", dimData, "8", "byte bytes"},
	{"kB", "", dimData, "8e3", "kilobyte kilobytes"},
	{"MB", "", dimData, "8e6", "megabyte megabytes"},
	{"GB", "", dimData, "8e9", "gigabyte gigabytes"},
	{"TB", "", dimData, "8e12", "terabyte terabytes"},
	{"PB", "", dimData, "8e15", "petabyte petabytes"},
	{"KiB", "", dimData, "8192", "kibibyte kibibytes"},
	{"MiB", "", dimData, "8388608", "mebibyte mebibytes"},
	{"GiB", "", dimData, "8589934592", "gibibyte gibibytes"},
	{"TiB", "", dimData, "8796093022208", "tebibyte tebibytes"},
	{"PiB", "", dimData, "9007199254740992", "pebibyte pebibytes"},
	{"bit", "bits", dimData, "1", "bits"},
	{"kbit", "", dimData, "1e3", "kilobit kilobits"},
	{"Mbit", "", dimData, "1e6", "megabit megabits"},
	{"Gbit", "", dimData, "1e9", "gigabit gigabits"},
	{"Tbit", "", dimData, "1e12", "terabit terabits"},

	{"N", "", dimForce, "1", "newton newtons"},
	{"J", "", dimEnergy, "1", "joule joules"},
	{"kJ", "", dimEnergy, "1e3", "kilojoule kilojoules"},
	{"MJ", "", dimEnergy, "1e6", "megajoule megajoules"},
	{"GJ", "", dimEnergy, "1e9", "gigajoule gigajoules"},
	{"Wh", "", dimEnergy, "3600", ""},
	{"kWh", "", dimEnergy, "3600000", ""},
	{"MWh", "", dimEnergy, "3600000000", ""},
	{"cal", "", dimEnergy, "4.184", "calorie calories"},
	{"kcal", "", dimEnergy, "4184", "kilocalorie kilocalories"},
	{"BTU", "", dimEnergy, "1055.05585262", "btus"},
	{"eV", "", dimEnergy, "1.602176634e-19", "electronvolt electronvolts"},
	{"W", "", dimPower, "1", "watt watts"},
	{"kW", "", dimPower, "1e3", "kilowatt kilowatts"},
	{"MW", "", dimPower, "1e6", "megawatt megawatts"},
	{"mW", "", dimPower, "1/1000", "milliwatt milliwatts"},

	{"Pa", "", dimPressure, "1", "pascal pascals"},
	{"hPa", "", dimPressure, "100", "hectopascal hectopascals"},
	{"kPa", "", dimPressure, "1000", "kilopascal kilopascals"},
	{"MPa", "", dimPressure, "1000000", "megapascal megapascals"},
	{"bar", "", dimPressure, "100000", "bars"},
	{"mbar", "", dimPressure, "100", "millibar millibars"},
	{"atm", "", dimPressure, "101325", "atmosphere atmospheres"},
	{"Torr", "", dimPressure, "101325/760", ""},
	{"mmHg", "", dimPressure, "133.322387415", ""},
	// One pound-force (0.45359237 kg × 9.80665 m/s²) on a square inch.
	{"psi", "", dimPressure, "44482216152605/6451600000", ""},

	{"°", "", dimAngle, "1", "deg degree degrees"},
	{"turn", "turns", dimAngle, "360", "turns revolution revolutions rev"},
	{"gon", "", dimAngle, "9/10", "grad gradian gradians"},
	{"arcmin", "", dimAngle, "1/60", "arcminute arcminutes"},
	{"arcsec", "", dimAngle, "1/3600", "arcsecond arcseconds"},

	{"$", "", base(baseDollar), "1", "usd dollar dollars"},
	{"€", "", base(baseEuro), "1", "eur euro euros"},
	{"£", "", base(basePound), "1", "gbp"},
	{"¥", "", base(baseYen), "1", "jpy yen"},
}

// products are names for products of the units above.
var products = []struct{ names, up, down string }{
	{"mph", "mi", "h"},
	{"kmh kph kmph", "km", "h"},
	{"fps", "ft", "s"},
	{"mps", "m", "s"},
	{"kbps", "kbit", "s"},
	{"mbps", "Mbit", "s"},
	{"gbps", "Gbit", "s"},
}

// exactNames are spellings whose case decides: by convention a small b is a
// bit and a big one a byte. "mb" and "gb", all small, stay bytes, which is
// what people who type so mean.
var exactNames = map[string]string{"b": "bit", "Kb": "kbit", "Mb": "Mbit", "Gb": "Gbit", "Tb": "Tbit", "Cal": "kcal"}

type unitTable struct{ exact, lower map[string]unit }

// unitNames is the index over units and products; nothing changes it later.
var unitNames = func() unitTable {
	t := unitTable{exact: make(map[string]unit), lower: make(map[string]unit)}
	first := func(name string, u unit) {
		if _, taken := t.lower[name]; !taken {
			t.lower[name] = u
		}
	}
	addDef := func(d *unitDef, names string) {
		u := unit{{d, 1}}
		t.exact[d.symbol] = u
		first(strings.ToLower(d.symbol), u)
		for _, n := range strings.Fields(names) {
			first(n, u)
		}
	}
	for _, row := range units {
		d := &unitDef{symbol: row.symbol, plural: row.plural, dim: row.dim, factor: mustRat(row.factor)}
		switch row.symbol {
		case "°C":
			d.offset = mustRat("273.15")
		case "°F":
			d.offset = mustRat("45967/180") // 459.67 × 5/9
		}
		addDef(d, row.names)
	}
	radian := new(big.Rat).Quo(big.NewRat(180, 1), piRat)
	addDef(&unitDef{symbol: "rad", dim: dimAngle, factor: radian, digits: bigDigits}, "radian radians")
	for _, row := range products {
		u := unit{t.exact[row.up][0], {t.exact[row.down][0].def, -1}}
		for _, n := range strings.Fields(row.names) {
			first(n, u)
		}
	}
	for name, symbol := range exactNames {
		t.exact[name] = t.exact[symbol]
	}
	return t
}()

// lookupUnit finds a unit by the name as typed: exact case first.
func lookupUnit(text string) (unit, bool) {
	if u, ok := unitNames.exact[text]; ok {
		return u, true
	}
	u, ok := unitNames.lower[strings.ToLower(text)]
	return u, ok
}

// isCalendar reports months and years, and their multiples: the units whose
// length depends on the date they are added to.
func (u unit) isCalendar() bool {
	if len(u) != 1 || u[0].pow != 1 {
		return false
	}
	switch u[0].def.symbol {
	case "month", "year", "decade", "century":
		return true
	}
	return false
}

func mustRat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic("calc: bad factor " + s) // programmer error in the table
	}
	return r
}
