package core

import (
	"net/netip"
	"strings"
)

// Origin is from where a user signs in.
type Origin struct {
	Network netip.Prefix // the client's
	// Browser and System are their names, empty if they are unknown. Only the names in this file are stored.
	Browser, System string
}

// A browser's User-Agent has the marks of others as well: the first mark counts.
var (
	browserMarks = [][2]string{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	}
	systemMarks = [][2]string{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Linux", "Linux"},
	}
)

// NewOrigin returns the origin of a request by its field User-Agent.
func NewOrigin(network netip.Prefix, userAgent string) Origin {
	named := func(marks [][2]string) string {
		for _, mark := range marks {
			if strings.Contains(userAgent, mark[0]) {
				return mark[1]
			}
		}
		return ""
	}
	return Origin{Network: network, Browser: named(browserMarks), System: named(systemMarks)}
}
