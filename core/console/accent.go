package console

import (
	"fmt"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// accent is the stylesheet with the site's accent colour. The path is empty if that is the one of style.css.
type accent struct {
	path  string
	asset *httpserver.Asset
}

// newAccent returns the stylesheet of a site. Its path has a digest, as the other files' path has.
func newAccent(branding core.Branding) accent {
	light, dark := branding.Accents()
	if light == core.DefaultAccent {
		return accent{}
	}
	css := fmt.Sprintf(":root{--link:light-dark(%[1]s,%[2]s);--main:light-dark(%[1]s,%[2]s)}\n"+
		"@supports not (color:light-dark(#000,#fff)){:root{--link:%[1]s;--main:%[1]s}}\n", light, dark)
	return accent{
		path:  Root + "/" + httpserver.Digest([]byte(css)) + "/accent.css",
		asset: httpserver.NewAsset([]byte(css), contentType("accent.css"), httpserver.CacheForever),
	}
}
