export { createHandler } from './handler.js'
export type { Handler, MountContext } from './mounts/mountable.js'
export type { HttpEngine } from './http-engine.js'
export type { Authenticate, Caller, HandlerSettings } from './options.js'
export {
  createApplication,
  type IssuedKey,
  issueKey,
  revokeKey,
  rotateKey,
  rotateWebhookSecret,
} from './auth/applications.js'
export { applicationSecret } from '../core/engine/webhooks/signing-secrets.js'
