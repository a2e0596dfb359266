/** Redirects an API process to the bench's simulated SNS, which signs with the key in the environment. */
import { createPrivateKey } from 'node:crypto'
import https from 'node:https'
import { startSns } from '../support/sns.ts'

const { BENCH_SNS_PEM: pem = '', BENCH_SNS_KEY: key_pem = '' } = process.env
const sns = await startSns({ teardown: () => {} }, { pem, key_pem, key: createPrivateKey(key_pem) })
https.globalAgent = sns.agent
