package core

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"net/mail"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/config"
)

// Branding is the name, the colour and the contact of a site, as its operator sets them.
// Its settings are CORE_SITE_NAME, CORE_SITE_DESCRIPTION, CORE_SITE_CONTACT, CORE_SITE_ACCENT, CORE_SITE_LOGO,
// CORE_SITE_PAGES.
type Branding struct {
	Name        string `env:"NAME" envDefault:"Veneer" help:"the site's name, in pages, e-mail and launchers; no password may be it"`
	Description string `env:"DESCRIPTION" example:"Skins and capes for the players of our servers." help:"a sentence about the site, for visitors, search engines and shared links; empty: Veneer's own"`
	Contact     string `env:"CONTACT" example:"help@example.org" help:"e-mail address or URL at which people reach the operator"`
	Accent      string `env:"ACCENT" envDefault:"#1f6b3a" help:"colour of links and buttons, as #RRGGBB, with a contrast (WCAG) of at least 4.5 on light pages; dark pages have a lighter shade where it has less there"`
	LogoFile    string `env:"LOGO" example:"/etc/veneer/site/logo.png" help:"PNG file of a square picture beside the name, of at most 256 KiB; empty: a green face"`
	PagesDir    string `env:"PAGES" example:"/etc/veneer/site" help:"directory of Markdown files: rules.md, terms.md, privacy.md and announcement.md, and in other languages as terms.zh.md; read again when they change; empty: none"`
}

const (
	maxDescription = 200       // characters
	maxLogo        = 256 << 10 // bytes
	maxLogoSide    = 2048      // pixels
	minContrast    = 4.5       // of text (WCAG 2.2, 1.4.3)
)

// Colours of the pages. A test compares the backgrounds with the console's stylesheet.
const (
	DefaultAccent = "#1f6b3a"
	darkAccent    = "#86d19a" // the default one of dark pages
	lightTint     = "#eef3ec" // the darkest background on light pages
	darkTint      = "#262b25" // the lightest background on dark pages
)

// Check returns an error that names an invalid setting. It does not read the logo.
func (b Branding) Check() error {
	switch {
	case b.Name == "" || !isPrintable(b.Name) || !isLegible(b.Name) || utf8.RuneCountInString(b.Name) > MaxName:
		return config.Errorf("NAME", "is %q, but must have 1 to %d characters, and no invisible ones", b.Name, MaxName)
	case !isPrintable(b.Description) || utf8.RuneCountInString(b.Description) > maxDescription:
		return config.Errorf("DESCRIPTION", "is %q, but must be a line of at most %d characters", b.Description, maxDescription)
	case b.Contact != "" && b.ContactURL() == "":
		return config.Errorf("CONTACT", "is %s, but must be an e-mail address, or a URL that begins with https://", config.QuoteRedacted(b.Contact))
	}
	accent, err := parseColour(b.Accent)
	if err != nil {
		return config.Errorf("ACCENT", "is %q, but must be a colour as in %s", b.Accent, DefaultAccent)
	}
	if have := contrast(accent, mustColour(lightTint)); have < minContrast {
		return config.Errorf("ACCENT", "is %s, whose contrast on light pages is %.2f, but must be at least %.1f, as it is with %s",
			b.Accent, math.Floor(100*have)/100, minContrast, accent.towards(0, lightTint))
	}
	return nil
}

// ContactURL returns the address that a link to the contact leads to; empty without a contact.
func (b Branding) ContactURL() string {
	if parsed, err := mail.ParseAddress(b.Contact); err == nil && parsed.Address == b.Contact && !strings.ContainsAny(b.Contact, "?&%") {
		return "mailto:" + b.Contact
	}
	if _, ok := config.ParseURL(b.Contact); ok && isPrintable(b.Contact) && !strings.Contains(b.Contact, " ") {
		return b.Contact
	}
	return ""
}

// Accents returns the accent colour of light and of dark pages. Text in it has a contrast of at least 4.5 on all
// backgrounds of the pages, and so have white on the light one and black on the dark one.
func (b Branding) Accents() (light, dark string) {
	accent := mustColour(b.Accent)
	if light = accent.String(); light == DefaultAccent {
		return light, darkAccent
	}
	return light, accent.towards(255, darkTint).String()
}

// ReadLogo returns the content of the logo's file, nil without one. Its error begins with the name of the setting.
func (b Branding) ReadLogo() ([]byte, error) {
	if b.LogoFile == "" {
		return nil, nil
	}
	content, err := readSmallFile(b.LogoFile, maxLogo)
	if err != nil {
		return nil, config.Errorf("LOGO", "is %q, a file that %w", b.LogoFile, err)
	}
	size, err := png.DecodeConfig(bytes.NewReader(content))
	if err == nil && max(size.Width, size.Height) > maxLogoSide {
		return nil, config.Errorf("LOGO", "is %q, a picture of %d × %d pixels, but may have %d on each side", b.LogoFile, size.Width, size.Height, maxLogoSide)
	}
	if err == nil {
		_, err = png.Decode(bytes.NewReader(content))
	}
	if err != nil {
		return nil, config.Errorf("LOGO", "is %q, a file that is no PNG picture", b.LogoFile)
	}
	return content, nil
}

// readSmallFile returns the content of a file. A file of more than most bytes is an error.
func readSmallFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	case int64(len(content)) > most:
		return nil, fmt.Errorf("is larger than %d KiB", most>>10)
	default:
		return content, nil
	}
}

// colour is a colour in sRGB.
type colour [3]uint8

var colourPattern = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

func parseColour(text string) (c colour, err error) {
	if !colourPattern.MatchString(text) {
		return colour{}, errors.New("it is no colour")
	}
	n, err := strconv.ParseUint(text[1:], 16, 32)
	return colour{uint8(n >> 16), uint8(n >> 8), uint8(n)}, err
}

// mustColour returns a colour that was checked.
func mustColour(text string) colour {
	c, err := parseColour(text)
	if err != nil {
		panic("BUG: " + text + ": " + err.Error())
	}
	return c
}

func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance returns the relative luminance (WCAG 2.2), from 0 to 1.
func (c colour) luminance() float64 {
	linear := func(value uint8) float64 {
		v := float64(value) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// Contrast returns the contrast of two valid colours, as in #1f6b3a.
func Contrast(a, b string) float64 { return contrast(mustColour(a), mustColour(b)) }

// contrast returns the contrast of two colours (WCAG 2.2), from 1 to 21.
func contrast(a, b colour) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// towards mixes a colour with black (0) or white (255), as little as gives it contrast on a background.
func (c colour) towards(end float64, background string) colour {
	const steps = 64
	mixed := c
	for step := 0.0; step <= steps && Contrast(mixed.String(), background) < minContrast; step++ {
		for i, value := range c {
			mixed[i] = uint8(math.Round(float64(value) + (end-float64(value))*step/steps))
		}
	}
	return mixed
}
