// The container that `createEngine` fills. The build makes one file of both packages (`tsup.config.ts`): loaded as
// theirs, which are 38, they took a fifth of the processor time of `import 'stemwork'`.
import 'reflect-metadata'
export { container, instanceCachingFactory, type InjectionToken } from 'tsyringe'
