// A real issuer of OpenID Connect (oidc-provider) for tests, on the loopback.
//
// Standard input: one line of JSON with modules, port, keys (private JWKS), audience, lifetime. It ends when standard input closes.
// The program `robot` gets tokens for itself, the program `nas` for people; whoever logs in is called as they say.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const asked = JSON.parse((await lines.next()).value);
const loaded = createRequire(`${asked.modules}/`)('oidc-provider');
const Provider = loaded.Provider ?? loaded.default;
const issuer = `http://127.0.0.1:${asked.port}`;

const provider = new Provider(issuer, {
  jwks: { keys: asked.keys },
  clientDefaults: { id_token_signed_response_alg: asked.algorithm },
  cookies: { keys: ['only for tests'] },
  clients: [
    { client_id: 'robot', client_secret: 'robot-secret-of-tests', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
    {
      client_id: 'nas', token_endpoint_auth_method: 'none', application_type: 'native', redirect_uris: ['http://127.0.0.1/callback'],
      grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'], response_types: ['code'],
    },
  ],
  claims: { openid: ['sub'], profile: ['preferred_username', 'department', 'groups'] },
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: id, department: 'accounts', secret_note: 'not declared', groups: asked.groups?.[id] ?? [] }),
  }),
  ttl: { ClientCredentials: asked.lifetime, AccessToken: asked.lifetime, IdToken: asked.lifetime, DeviceCode: 120 },
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_, client, one) => one ?? (client.clientId === 'robot' ? asked.audience : undefined),
      getResourceServerInfo: () => ({
        scope: 'storage', audience: asked.audience, accessTokenFormat: 'jwt', accessTokenTTL: asked.lifetime,
        jwt: { sign: { alg: asked.algorithm } },
      }),
    },
  },
  extraTokenClaims: (_, token) => (token.clientId === 'robot' ? { sub: 'robot', department: 'machines', groups: ['nas-writers', 'others'] } : undefined),
});

provider.on('server_error', (_, error) => console.error(error));
const server = provider.listen(asked.port, '127.0.0.1', () => console.log(issuer));
for await (const _ of lines) { /* nothing more is asked */ }
server.closeAllConnections();
server.close();
