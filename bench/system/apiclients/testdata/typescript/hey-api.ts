// Registers at a site, uploads a texture, finds it in the closet and fetches its avatar, with the
// client that @hey-api/openapi-ts generates from the API document. The arguments are the site's
// URL and a PNG file.
import { openAsBlob } from "node:fs";
import { client } from "./generated/hey-api/client.gen";
import { getAvatar, listClosetItems, login, register, uploadTexture } from "./generated/hey-api/sdk.gen";
import type { ClosetItem, Texture } from "./generated/hey-api/types.gen";

async function main(site: string, path: string) {
  client.setConfig({ baseUrl: site });
  const account = { email: "hey@example.com", password: "correct horse" };
  await register({ body: { ...account, nickname: "Hey" }, throwOnError: true });
  const session = await login({ body: account, throwOnError: true });
  client.setConfig({ auth: session.data.token });

  const file = new File([await openAsBlob(path)], "skin.png", { type: "image/png" });
  const uploaded = await uploadTexture({ body: { file, name: "Traveller", type: "skin" }, throwOnError: true });
  const texture: Texture = uploaded.data.data;

  const closet = await listClosetItems({ query: { category: "skin", page: 1 }, throwOnError: true });
  const items: ClosetItem[] = closet.data.data;
  if (items.length !== 1 || items[0]?.pivot.item_name !== "Traveller") {
    throw new Error(`the closet is ${JSON.stringify(closet.data)}`);
  }

  const picture = await getAvatar({ path: { tid: texture.tid }, query: { size: 64, png: "1" }, throwOnError: true });
  const head: Blob = picture.data;
  if (head.type !== "image/png" || head.size === 0) {
    throw new Error(`the head is ${head.size} bytes of ${head.type}`);
  }

  const missing = await getAvatar({ path: { tid: 999999 } });
  const message: string | undefined = missing.error?.message;
  if (missing.response?.status !== 404 || !message) {
    throw new Error(`a texture that does not exist: ${JSON.stringify(missing.error)}`);
  }
  console.log(`texture ${texture.tid}, a head of ${head.size} bytes`);
}

main(process.argv[2]!, process.argv[3]!).catch((cause: unknown) => {
  console.error(cause);
  process.exitCode = 1;
});
