// Starts a game server and a game of one version, which signs in and joins it, and prints as JSON
// what the server saw. The argument is JSON:
//   version   of the game, or "newest"
//   root      URL of the API of launchers
//   username, password   to sign in with; without a password the game joins without signing in
//   session   of a former game, which a launcher kept: the game begins with it
//   skipValidation   whether the game takes the session as it is
//   key       PEM of the key that must have signed the player's key; absent: players have none
'use strict'
const crypto = require('node:crypto')
const net = require('node:net')
const { once } = require('node:events')
const job = JSON.parse(process.argv[2])

// The game server has no option for the session server, and knows Mojang's key alone.
const yggdrasil = require('yggdrasil')
const sessionServer = `${job.root}/sessionserver`
const { server } = yggdrasil
yggdrasil.server = options => server({ ...options, host: sessionServer })
if (job.key) require('minecraft-protocol/src/server/constants').mojangPublicKeyPem = job.key
const protocol = require('minecraft-protocol')

const version = job.version === 'newest' ? protocol.supportedVersions.at(-1) : job.version

// fetchKeys asks for the key pair of the player, as a game does before it connects.
async function fetchKeys (token) {
  const response = await fetch(`${job.root}/minecraftservices/player/certificates`, { method: 'POST', headers: { Authorization: `Bearer ${token}` } })
  if (!response.ok) throw new Error(`certificates: ${response.status} ${await response.text()}`)
  const { keyPair, publicKeySignature, publicKeySignatureV2, expiresAt } = await response.json()
  const der = pem => Buffer.from(pem.split('\n').slice(1, -2).join(''), 'base64')
  return {
    public: crypto.createPublicKey({ key: der(keyPair.publicKey), format: 'der', type: 'spki' }),
    private: crypto.createPrivateKey({ key: der(keyPair.privateKey), format: 'der', type: 'pkcs8' }),
    signature: Buffer.from(publicKeySignature, 'base64'),
    signatureV2: Buffer.from(publicKeySignatureV2, 'base64'),
    expiresOn: new Date(expiresAt)
  }
}

async function main () {
  const host = '127.0.0.1'
  const gameServer = protocol.createServer({ host, port: 0, version, hideErrors: true, enforceSecureProfile: !!job.key })
  await once(gameServer, 'listening')
  const { port } = gameServer.socketServer.address()
  const { version: { version: number }, supportFeature, loginPacket } = require('minecraft-data')(version)

  const result = { version, number }
  const joined = new Promise((resolve, reject) => {
    gameServer.on('error', reject)
    gameServer.on('login', player => {
      Object.assign(result, { profile: player.profile, signed: !!player.profileKeys })
      // Since 1.19.3 a game sends its key when it plays.
      player.once('chat_session_update', () => {
        result.signed = !!player.profileKeys
        resolve()
      })
    })
    gameServer.on('playerJoin', player => {
      if (job.key && supportFeature('useChatSessions')) player.write('login', { ...loginPacket, enforcesSecureChat: true })
      else resolve()
    })

    const game = protocol.createClient({
      host,
      port,
      version,
      auth: 'mojang',
      authServer: `${job.root}/authserver`,
      sessionServer,
      profilesFolder: false,
      username: job.username,
      password: job.password,
      session: job.session,
      skipValidation: job.skipValidation,
      hideErrors: true,
      connect: game => {
        const connect = () => game.setSocket(net.connect(port, host))
        if (!job.key) return connect()
        fetchKeys(game.session.accessToken).then(keys => { game.profileKeys = keys; connect() }, reject)
      }
    })
    game.on('session', session => { result.session = session })
    game.on('error', reject)
    game.on('disconnect', ({ reason }) => reject(new Error(`disconnected: ${reason}`)))
    game.on('end', reason => reject(new Error(`ended: ${reason}`)))
  })
  await joined.catch(error => { result.error = error.message })
  process.stdout.write(JSON.stringify(result), () => process.exit())
}

main()
