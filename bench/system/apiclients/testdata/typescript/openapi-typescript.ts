// The same as hey-api.ts with the types that openapi-typescript generates from the API document,
// and the client openapi-fetch, which is typed by them.
import { openAsBlob } from "node:fs";
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/openapi-typescript";

async function main(site: string, path: string) {
  const client = createClient<paths>({ baseUrl: site });
  const account = { email: "types@example.com", password: "correct horse" };
  const registered = await client.POST("/api/auth/register", { body: { ...account, nickname: "Types" } });
  if (!registered.data) {
    throw new Error(registered.error.message);
  }
  const session = await client.POST("/api/auth/login", { body: account });
  if (!session.data) {
    throw new Error(session.error.message);
  }
  const authorization = `Bearer ${session.data.token}`;
  client.use({
    onRequest({ request }) {
      request.headers.set("Authorization", authorization);
      return request;
    },
  });

  const file = new File([await openAsBlob(path)], "skin.png", { type: "image/png" });
  const uploaded = await client.POST("/api/textures", {
    body: { file, name: "Traveller", type: "skin", public: true },
    bodySerializer(fields) {
      const form = new FormData();
      form.set("file", fields.file);
      form.set("name", fields.name);
      form.set("type", fields.type);
      return form;
    },
  });
  if (!uploaded.data) {
    throw new Error(uploaded.error.message);
  }
  const texture: components["schemas"]["Texture"] = uploaded.data.data;

  const closet = await client.GET("/api/closet", { params: { query: { category: "skin", page: 1 } } });
  if (closet.data?.data[0]?.pivot.item_name !== "Traveller") {
    throw new Error(`the closet is ${JSON.stringify(closet.data ?? closet.error)}`);
  }

  const picture = await client.GET("/avatar/{tid}", {
    params: { path: { tid: texture.tid }, query: { size: 64, png: "1" } },
    parseAs: "blob",
  });
  const head: Blob | undefined = picture.data;
  if (head?.type !== "image/png" || head.size === 0) {
    throw new Error(`the head is ${head?.size} bytes of ${head?.type}`);
  }
  console.log(`texture ${texture.tid}, a head of ${head.size} bytes`);
}

main(process.argv[2]!, process.argv[3]!).catch((cause: unknown) => {
  console.error(cause);
  process.exitCode = 1;
});
