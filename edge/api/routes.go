package api

import "github.com/veneer-skins/veneer/shared/serve"

// routes are what the public listener counts and logs requests under.
type routes struct {
	api               *serve.Route // all that is passed on
	avatars, previews [byHash + 1]*serve.Route
}

func newRoutes(door serve.Door) routes {
	return routes{
		api: door.Route("/api"),
		avatars: [...]*serve.Route{
			byName: door.Route("/avatar/player/{name}"), byUser: door.Route("/avatar/user/{uid}"),
			byTID: door.Route("/avatar/{tid}"), byHash: door.Route("/avatar/hash/{hash}"),
		},
		previews: [...]*serve.Route{byTID: door.Route("/preview/{tid}"), byHash: door.Route("/preview/hash/{hash}")},
	}
}

// of returns the route of a picture.
func (r *routes) of(about subject) *serve.Route {
	if about.preview {
		return r.previews[about.way]
	}
	return r.avatars[about.way]
}
