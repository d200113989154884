// SPDX-License-Identifier: Apache-2.0
// What Netron's own reader finds in model files, printed as one JSON object for each: the format that it recognized, inputs,
// outputs, operators by type, and whether every constant's values could be decoded.
//
//     node netron_client.mjs FOLDER_WITH_NETRON FILE...        (the folder of the PyPI package, as ES modules)
import * as fs from 'fs';
import * as path from 'path';
import * as url from 'url';

const [folder, ...files] = process.argv.slice(2);
const netron = async (name) => import(url.pathToFileURL(path.join(folder, name)).href);

// What the view expects of a browser or of Electron.
class Host {
    async require(id) { return netron(`${id}.js`); }
    async asset(file) { return fs.promises.readFile(path.join(folder, file), 'utf-8'); }
    environment() { return null; }
    exception(error) { throw error; }
    event() {}
    screen() {}
}

const { ModelFactoryService } = await netron('view.js');
const { BinaryStream, Tensor } = await netron('base.js');

class Context {
    constructor(host, file) {
        this.host = host;
        this.identifier = path.basename(file);
        this.stream = new BinaryStream(fs.readFileSync(file));
        this.entries = new Map();
    }
    async asset(file) { return this.host.asset(file); }
    async require(id) { return this.host.require(id); }
    async fetch(file) { throw new Error(`${file} is asked for, but a model is one file`); }
    error(error) { throw error; }
}

const names = (list) => list.map((argument) => argument.value.map((value) => value.name).join(','));

for (const file of files) {
    const host = new Host();
    const model = await new ModelFactoryService(host).open(new Context(host, file));
    const graph = (model.modules || model.graphs)[0];
    const operators = {};
    let constants = 0;
    for (const node of graph.nodes) {
        operators[node.type.name] = (operators[node.type.name] || 0) + 1;
        for (const argument of node.inputs) {
            for (const value of argument.value || []) {
                if (value && value.initializer) {
                    const tensor = new Tensor(value.initializer);
                    if (tensor.encoding !== '<' && tensor.encoding !== '|') throw new Error(`${value.name}: ${tensor.encoding}`);
                    if (!tensor.empty && tensor.type.shape.dimensions.length > 0) String(tensor.value[0]);
                    constants++;
                }
            }
        }
    }
    console.log(JSON.stringify({ file: path.basename(file), format: model.format, inputs: names(graph.inputs),
        outputs: names(graph.outputs), operators, constants }));
}
